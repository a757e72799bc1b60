/** Reads what a client passes to its hooks. Clients write the fields in two styles, and some write all values as texts. */
import { z } from 'zod'
import { omitUndefined } from '../../data/omit-undefined.js'
import { lazily } from '../../protocol/lazily.js'
import { parseInput } from '../../protocol/parse.js'
import type { HookCall, HookEvent } from './hook-client.js'

const text = (max: number) => z.string().max(max).optional()

const inputSchema = lazily(() =>
  z.object({
    session_id: text(200),
    sessionId: text(200),
    transcript_path: text(4096).nullable(),
    transcriptPath: text(4096).nullable(),
    prompt: z.string().optional(),
    wakes_idle: z.boolean().optional(),
    stop_hook_active: z.union([z.boolean(), z.enum(['true', 'false', ''])]).optional(),
  }),
)

/**
 * Reads the fields of a hook. Fields that this package does not need are ignored, because newer versions of a client may have more.
 * @throws INVALID_INPUT for a field of the wrong type
 */
export function readHookInput(event: HookEvent, input: unknown): HookCall {
  const read = parseInput(inputSchema(), input, event)
  const sessionId = read.session_id ?? read.sessionId
  const transcriptPath = read.transcript_path ?? read.transcriptPath
  return {
    event,
    isContinued: read.stop_hook_active === true || read.stop_hook_active === 'true',
    ...omitUndefined({
      sessionId: sessionId === '' ? undefined : sessionId,
      transcriptPath: transcriptPath === null || transcriptPath === '' ? undefined : transcriptPath,
      prompt: read.prompt,
      wakesIdle: read.wakes_idle,
    }),
  }
}
