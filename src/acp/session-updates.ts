/** The updates of an agent during its turn: output, progress, tool calls and the last message. */
import { z } from 'zod'
import { ByteTail } from '../engine/byte-tail.js'
import type { RunContext } from '../engine/runner.js'
import { lazily } from '../protocol/lazily.js'
import { keptText } from '../runners/captured-output.js'
import type { KeptText } from '../runners/output-parsers.js'
import { cutText } from '../text/cut-text.js'
import { TOOL_KINDS } from '../protocol/acp-permissions.js'
import type { AcpToolKind } from './acp-options.js'

/** The number of tool calls whose kind and title are kept: the latest ones. */
const MAX_TOOL_CALLS = 1000

/** The longest title that is shown, and the longest id that is kept, in characters. */
const MAX_TITLE_CHARS = 200

/** A tool call as its agent describes it. */
export interface ToolCallInfo {
  readonly kind: AcpToolKind
  readonly title: string
}

const toolFields = lazily(() => ({
  toolCallId: z.string().max(MAX_TITLE_CHARS),
  title: z.string().nullish(),
  kind: z.enum(TOOL_KINDS).nullish().catch(undefined),
  status: z.string().nullish(),
}))

/** The parts of `session/update` that are used. Other and malformed updates are ignored. */
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

/** The state of a turn. */
export interface SessionUpdates {
  /** Reads the parameters of a `session/update`. Never throws. */
  readonly read: (params: unknown) => void
  /** Ignores updates until the promise settles, because an agent that loads a session replays it. */
  discardUntil(loaded: Promise<unknown>): Promise<void>
  /** Describes the tool call of a request, which may omit fields from earlier updates. */
  toolCall(request: {
    readonly toolCallId: string
    readonly kind?: AcpToolKind | null | undefined
    readonly title?: string | null | undefined
  }): ToolCallInfo
  /** The last message of the agent. */
  message(): KeptText
}

/** Foreign text on one line. */
export const oneLine = (text: string, maxChars = MAX_TITLE_CHARS): string =>
  cutText(
    text
      .slice(0, 2 * maxChars)
      .replace(/\s+/g, ' ')
      .trim(),
    maxChars,
  )

/** @param maxBytes the maximum size of a message that is kept */
export function followUpdates(context: Pick<RunContext, 'append' | 'report'>, maxBytes: number): SessionUpdates {
  const tools = new Map<string, ToolCallInfo>()
  let message = new ByteTail(maxBytes)
  let messageId: string | undefined
  let isNewMessage = false
  let isLineStart = true
  let isReplay = false
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
  const keepTool = (id: string, tool: ToolCallInfo): void => {
    tools.delete(id)
    tools.set(id, tool)
    for (const oldest of tools.keys()) {
      if (tools.size <= MAX_TOOL_CALLS) break
      tools.delete(oldest)
    }
  }
  return {
    read: (params) => {
      const parsed = updateSchema().safeParse(params)
      if (!parsed.success || isReplay) return
      const { update } = parsed.data
      switch (update.sessionUpdate) {
        case 'agent_message_chunk': {
          const { text } = update.content
          const id = update.messageId ?? undefined
          append(text)
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
          const isKnown = tools.has(update.toolCallId)
          const tool = toolCall(update)
          keepTool(update.toolCallId, tool)
          isNewMessage = true
          const line = `[${tool.kind}] ${tool.title}`
          if (update.status === 'failed') appendLine(`${line}: failed`)
          else if (!isKnown) appendLine(line)
        }
      }
    },
    discardUntil: async (loaded) => {
      isReplay = true
      await loaded
      isReplay = false
    },
    toolCall,
    message: () => keptText(message),
  }
}
