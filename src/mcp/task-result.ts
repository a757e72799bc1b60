/** Makes the MCP result of a task that was made from a call. */
import type { CallToolResult } from '@modelcontextprotocol/server'
import type { SettledTaskInfo } from '../../machines/records.js'
import { maxWholeChars } from '../features/output/bounded-text.js'
import { boundNotification, titleOf } from '../features/delivery/notifications.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { TOOLS } from '../tools/tool-list.js'
import type { Backend } from './backend.js'
import { imagesOf } from './command-images.js'
import { FOLLOW_UPS } from './follow-ups.js'
import { toCallToolResult } from './mcp-tool.js'
import { earlierText } from './result-marks.js'
import { hasSucceeded } from '../../machines/task-status.js'

/**
 * Returns the result that a direct call would have returned. A first line names the task, because the client may request the result long after the call.
 */
export function taskResult(backend: Backend, ended: SettledTaskInfo): CallToolResult {
  const { config, session } = backend
  const isEarlier = session?.earlierTasks.has(ended.id) === true
  const { maxMessageChars } = config
  const title = titleOf(ended)
  const room = maxWholeChars(maxMessageChars) - title.length - 1
  const end = boundNotification(ended, maxMessageChars, room, FOLLOW_UPS.read, false)
  const text = `${title}\n${end.text}`
  const llmContent = isEarlier ? `${text}\n\n${earlierText([ended.id])}` : text
  const { id, kind, status, timeoutMs, exitCode, endedProcesses } = ended
  const metadata = {
    agentId: id,
    status,
    async: false,
    effectiveTimeoutSeconds: timeoutMs === undefined ? -1 : timeoutMs / 1000,
    ...omitUndefined({ exitCode, endedProcesses }),
  }
  const { output } = kind === 'command' ? TOOLS.run_command : TOOLS.task
  const { content, structuredContent } = toCallToolResult({ llmContent, returnDisplay: text, metadata }, output())
  return {
    content: [...content, ...imagesOf(backend, [id])],
    structuredContent: { ...(structuredContent as object), ...(isEarlier && { earlier_session: [id] }) },
    ...(!hasSucceeded(status) && { isError: true }),
  }
}
