/** Reads the updates that an agent sends while it works: output, progress, tool calls and messages. */
import { z } from 'zod'
import { ByteTail } from '../../engine/byte-tail.js'
import type { RunContext } from '../../engine/runner.js'
import { sleep } from '../../system/abort.js'
import type { Clock } from '../../system/clock.js'
import { lazily } from '../../protocol/lazily.js'
import { keptText } from '../captured-output.js'
import type { KeptText } from '../output-parsers.js'
import { cutText } from '../../data/cut-text.js'
import { TOOL_KINDS } from '../../protocol/acp-permissions.js'
import type { AcpToolKind } from './acp-options.js'

/** The maximum number of tool calls whose kind and title are kept. The oldest are dropped first. */
const MAX_TOOL_CALLS = 1000

/** The old updates of a session have ended when none has come for this time, in ms; at the latest after `MAX_REPLAY_MS`. */
const QUIET_MS = 200
const MAX_REPLAY_MS = 5000

/** The maximum length of a title that is shown, and of an id that is kept, in characters. */
const MAX_TITLE_CHARS = 200

export interface ToolCallInfo {
  readonly kind: AcpToolKind
  readonly title: string
}

interface KnownTool extends ToolCallInfo {
  /** Whether its line was shown. The title of a call that is pending may be a placeholder, such as `Terminal`. */
  readonly isShown: boolean
}

const toolFields = lazily(() => ({
  toolCallId: z.string().max(MAX_TITLE_CHARS),
  title: z.string().nullish(),
  kind: z.enum(TOOL_KINDS).nullish().catch(undefined),
  status: z.string().nullish(),
  rawInput: z.object({ command: z.string() }).nullish().catch(undefined),
}))

/** The kinds of `session/update` that are used. Other updates, and malformed ones, are ignored. */
const updateSchema = lazily(() =>
  z.object({
    update: z.discriminatedUnion('sessionUpdate', [
      z.object({
        sessionUpdate: z.literal('agent_message_chunk'),
        content: z.object({ type: z.literal('text'), text: z.string() }),
        messageId: z.string().nullish(),
      }),
      z.object({ sessionUpdate: z.enum(['tool_call', 'tool_call_update']), ...toolFields() }),
      z.object({
        sessionUpdate: z.literal('plan'),
        entries: z.array(z.object({ content: z.string(), status: z.string() })),
      }),
    ]),
  }),
)

export interface SessionUpdates {
  /** Reads the parameters of a `session/update`. Never throws. */
  readonly read: (params: unknown) => void
  /**
   * Ignores updates until the session is loaded and no more of them come. An agent that loads a session sends all of its old updates again; Gemini CLI 0.61.0
   * does it after its answer.
   */
  discardUntil(loaded: Promise<unknown>, clock: Clock): Promise<void>
  /** Begins the answer to the prompt. Agents may send messages earlier: Gemini CLI 0.61.0 reports a change of its mode as one. */
  startAnswer(): void
  /** Returns kind and title of a tool call. If the request lacks them, they come from earlier updates. */
  toolCall(request: {
    readonly toolCallId: string
    readonly kind?: AcpToolKind | null | undefined
    readonly title?: string | null | undefined
  }): ToolCallInfo
  message(): KeptText
}

/** Shortens a text of the agent, and puts it on one line. */
export const oneLine = (text: string, maxChars = MAX_TITLE_CHARS): string =>
  cutText(
    text
      .slice(0, 2 * maxChars)
      .replace(/\s+/g, ' ')
      .trim(),
    maxChars,
  )

/** The title of a tool with its command. Copilot CLI 1.0.102 has only a description in the title. */
const withCommand = ({ kind, title }: ToolCallInfo, command: string | undefined): string => {
  const line = oneLine(command ?? '')
  return kind !== 'execute' || line === '' || title.includes(line) ? title : `${title}: ${line}`
}

/** @param maxBytes the maximum size of a message that is kept, in bytes */
export function followUpdates(context: Pick<RunContext, 'append' | 'report'>, maxBytes: number): SessionUpdates {
  const tools = new Map<string, KnownTool>()
  let message = new ByteTail(maxBytes)
  let messageId: string | undefined
  /** The message whose text was shown last. */
  let lastSpeaker = ''
  let isNewMessage = false
  let isLineStart = true
  let isReplay = false
  let received = 0
  const append = (text: string): void => {
    if (text === '') return
    context.append(text)
    isLineStart = text.endsWith('\n')
  }
  const appendLine = (line: string): void => append(`${isLineStart ? '' : '\n'}${line}\n`)
  const toolCall: SessionUpdates['toolCall'] = ({ toolCallId, kind, title }) => {
    const known = tools.get(toolCallId)
    return { kind: kind ?? known?.kind ?? 'other', title: oneLine(title ?? known?.title ?? '') }
  }
  const keepTool = (id: string, tool: KnownTool): void => {
    tools.delete(id)
    tools.set(id, tool)
    for (const oldest of tools.keys()) {
      if (tools.size <= MAX_TOOL_CALLS) break
      tools.delete(oldest)
    }
  }
  return {
    read: (params) => {
      received += 1
      const parsed = updateSchema().safeParse(params)
      if (!parsed.success || isReplay) return
      const { update } = parsed.data
      switch (update.sessionUpdate) {
        case 'agent_message_chunk': {
          const { text } = update.content
          const id = update.messageId ?? undefined
          const speaker = id ?? (messageId === undefined ? '' : 'notice')
          if (text !== '' && !isLineStart && (isNewMessage || speaker !== lastSpeaker)) append('\n')
          lastSpeaker = speaker
          append(text)
          // An agent that numbers its messages sends its own notices without a number: they do not replace an answer.
          if (id === undefined && messageId !== undefined) return
          if (id !== messageId) isNewMessage = true
          messageId = id
          if (isNewMessage && text.trim() === '') return
          if (isNewMessage) message = new ByteTail(maxBytes)
          isNewMessage = false
          message.append(new TextEncoder().encode(text))
          return
        }
        case 'plan': {
          const { entries } = update
          if (entries.length === 0) return
          const current = entries.find(({ status }) => status === 'in_progress')
          context.report({
            progress: entries.filter(({ status }) => status === 'completed').length,
            total: entries.length,
            ...(current !== undefined && { message: oneLine(current.content) }),
          })
          return
        }
        default: {
          const known = tools.get(update.toolCallId)
          const tool = toolCall(update)
          const command = update.rawInput?.command
          const isPlaceholder = known === undefined && update.status === 'pending' && command === undefined
          keepTool(update.toolCallId, { ...tool, isShown: !isPlaceholder })
          isNewMessage = true
          const line = `[${tool.kind}] ${withCommand(tool, command)}`
          if (update.status === 'failed') appendLine(`${line}: failed`)
          else if (!isPlaceholder && known?.isShown !== true) appendLine(line)
        }
      }
    },
    discardUntil: async (loaded, clock) => {
      isReplay = true
      await loaded
      for (let before = -1, waited = 0; before !== received && waited < MAX_REPLAY_MS; waited += QUIET_MS) {
        before = received
        await sleep(clock, QUIET_MS)
      }
      isReplay = false
    },
    startAnswer: () => {
      isNewMessage = true
    },
    toolCall,
    message: () => keptText(message),
  }
}
