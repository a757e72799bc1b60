/** Chooses the mode and the options of a session, as the options of the runner say. */
import type { NewSessionResponse, SessionConfigOption } from '@agentclientprotocol/sdk'
import { preview } from '../../data/preview.js'
import { ProcessError } from '../process-error.js'
import type { AcpSettings } from './acp-options.js'
import { oneLine } from './session-updates.js'

/** The maximum number of names in an error. */
const MAX_NAMES = 20

/** Modes in which an agent decides by itself, by the ids that agents use. Some of them are URLs. */
const UNASKING = /^(auto|yolo|never|dont-?ask|bypass|full|danger|accept|agent$)|#autopilot$/i

/** Modes in which an agent only plans. */
const PLANNING = /^plan|#plan$/i

/** What a session offers, as the agent says when it starts or continues one. */
type SessionOffer = Partial<Pick<NewSessionResponse, 'modes' | 'configOptions'>>

export interface SessionChoices {
  /** The mode to set. Undefined: it is set already, or the agent has no modes. */
  readonly modeId: string | undefined
  /** The option that has the mode as its value. Undefined: the agent has modes of their own. */
  readonly modeOption: string | undefined
  readonly configOptions: readonly (readonly [id: string, value: string])[]
}

/**
 * Returns what to set.
 * @throws ProcessError `ACP_FAILED` with the list of what the agent offers, if it does not offer what the options ask for
 */
export function sessionChoices(
  { program: { command }, mode, configOptions, permissions }: AcpSettings,
  offer: SessionOffer,
): SessionChoices {
  const fail = (what: string, offered: readonly string[]): never => {
    const names = offered.slice(0, MAX_NAMES).map((name) => oneLine(name))
    const list = names.length === 0 ? 'none' : names.join(', ')
    throw new ProcessError('ACP_FAILED', `Agent ${preview(command)} ${what}. It offers: ${list}.`, { command })
  }
  for (const [id, value] of Object.entries(configOptions)) checkOption(id, value, offer.configOptions ?? [], fail)
  const { ids, currentModeId, modeOption } = modesOf(offer)
  const choose = (): string | undefined => {
    if (mode !== undefined) return ids.includes(mode) ? mode : fail(`has no mode ${preview(mode)}`, ids)
    if (permissions === 'allow' || currentModeId === undefined || !UNASKING.test(currentModeId)) return undefined
    const asking = ids.find((id) => !UNASKING.test(id) && !PLANNING.test(id))
    return asking ?? fail("has no mode in which it asks for permission; `permissions: 'allow'` accepts that", ids)
  }
  const modeId = choose()
  return {
    modeId: modeId === currentModeId ? undefined : modeId,
    modeOption,
    configOptions: Object.entries(configOptions),
  }
}

/** The modes of a session. Agents offer them as such, or as an option of this category. */
function modesOf({ modes, configOptions }: SessionOffer) {
  if (modes) return { ids: modes.availableModes.map(({ id }) => id), currentModeId: modes.currentModeId }
  const option = configOptions?.find((one) => one.category === 'mode' && one.type === 'select')
  if (option?.type !== 'select') return { ids: [] as readonly string[] }
  return { ids: valuesOf(option), currentModeId: option.currentValue, modeOption: option.id }
}

const valuesOf = ({ options }: Extract<SessionConfigOption, { type: 'select' }>): readonly string[] =>
  options.flatMap((one) => ('options' in one ? one.options : [one])).map((one) => one.value)

function checkOption(
  id: string,
  value: string,
  options: readonly SessionConfigOption[],
  fail: (what: string, offered: readonly string[]) => never,
): void {
  const option = options.find((one) => one.id === id)
  if (option === undefined) {
    return fail(
      `has no option ${preview(id)}`,
      options.map((one) => one.id),
    )
  }
  if (option.type !== 'select') return
  const values = valuesOf(option)
  if (!values.includes(value)) fail(`has no value ${preview(value)} of its option ${preview(id)}`, values)
}
