/** Chooses the mode and the options of a session, as the options of the runner say. */
import type { NewSessionResponse, SessionConfigOption } from '@agentclientprotocol/sdk'
import { preview } from '../../data/preview.js'
import { ProcessError } from '../process-error.js'
import type { AcpSettings } from './acp-options.js'
import { oneLine } from './session-updates.js'

/** The maximum number of names in an error. */
const MAX_NAMES = 20

/** Modes in which an agent decides by itself, by the ids that agents use. */
const UNASKING = /^(auto|yolo|never|dont-?ask|bypass|full|danger|accept|agent$)/i

/** Modes in which an agent only plans. */
const PLANNING = /^plan/i

/** What a session offers, as the agent says when it starts or continues one. */
type SessionOffer = Partial<Pick<NewSessionResponse, 'modes' | 'configOptions'>>

export interface SessionChoices {
  /** The mode to set. Undefined: it is set already, or the agent has no modes. */
  readonly modeId: string | undefined
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
  const { availableModes = [], currentModeId } = offer.modes ?? {}
  const ids = availableModes.map(({ id }) => id)
  const choose = (): string | undefined => {
    if (mode !== undefined) return ids.includes(mode) ? mode : fail(`has no mode ${preview(mode)}`, ids)
    if (permissions === 'allow' || currentModeId === undefined || !UNASKING.test(currentModeId)) return undefined
    const asking = ids.find((id) => !UNASKING.test(id) && !PLANNING.test(id))
    return asking ?? fail("has no mode in which it asks for permission; `permissions: 'allow'` accepts that", ids)
  }
  const modeId = choose()
  return {
    modeId: modeId === currentModeId ? undefined : modeId,
    configOptions: Object.entries(configOptions),
  }
}

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
  const values = option.options.flatMap((one) => ('options' in one ? one.options : [one])).map((one) => one.value)
  if (!values.includes(value)) fail(`has no value ${preview(value)} of its option ${preview(id)}`, values)
}
