/** The answers to permission requests of an agent that speaks the Agent Client Protocol. */
import { z } from 'zod'

/** The kinds of tools (ACP, "Tool Calls"). A tool without a kind, or with an unknown kind, is `other`. */
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

/** `ask` asks the owner of the task. */
export const ACP_POLICIES = ['allow', 'deny', 'ask'] as const

/** The permissions in a configuration file: one policy for all tools, or one for each kind. */
export const acpPermissionsSchema = () => {
  const policy = z.enum(ACP_POLICIES).optional()
  const kinds = [...TOOL_KINDS, 'default'] as const
  const byKind = Object.fromEntries(kinds.map((kind) => [kind, policy])) as Record<
    (typeof kinds)[number],
    typeof policy
  >
  return z.union([z.enum(ACP_POLICIES), z.strictObject(byKind)])
}
