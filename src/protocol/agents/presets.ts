/** The presets of this package, by the names that options and configurations use. */
import type { AgentPreset } from './agent-preset.js'
import { claudeCode } from './claude-code.js'
import { codex } from './codex.js'
import { copilot } from './copilot.js'
import { gemini } from './gemini.js'
import { opencode } from './opencode.js'
import { qwenCode } from './qwen-code.js'

export const AGENT_PRESETS = {
  'claude-code': claudeCode,
  codex,
  gemini,
  opencode,
  'qwen-code': qwenCode,
  copilot,
} as const satisfies Readonly<Record<string, AgentPreset>>

/** The name of an agent that this package knows. */
export type AgentName = keyof typeof AGENT_PRESETS

export const AGENT_NAMES = Object.keys(AGENT_PRESETS) as [AgentName, ...AgentName[]]
