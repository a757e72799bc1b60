/** The answers to permission requests of an agent that speaks the Agent Client Protocol. */
import { z } from 'zod'

/** The kinds of tools that the protocol defines (ACP, "Tool Calls"). A tool without a kind, or with an unknown kind, counts as `other`. */
export const TOOL_KINDS = [
  'read',
  'edit',
  'delete',
  'move',
  'search',
  'execute',
  'think',
  'fetch',
  'switch_mode',
  'other',
] as const

/** The policies: `allow` and `deny` answer a request at once, `ask` passes it on to the owner of the task as a question. */
export const ACP_POLICIES = ['allow', 'deny', 'ask'] as const

/** The schema of the permissions in a configuration file: one policy for all tools, or one policy for each kind of tool. */
export const acpPermissionsSchema = () => {
  const policy = z.enum(ACP_POLICIES).optional()
  const kinds = [...TOOL_KINDS, 'default'] as const
  const byKind = Object.fromEntries(kinds.map((kind) => [kind, policy])) as Record<
    (typeof kinds)[number],
    typeof policy
  >
  return z.union([z.enum(ACP_POLICIES), z.strictObject(byKind)])
}
