/** The agents of the suite: how each is set up for the scripted model, and how it is run. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { acpRunner } from '../../src/runners/acp/index.js'
import type { AcpRunnerOptions } from '../../src/runners/acp/acp-options.js'
import { processRunner, type OutputRunner, type ProcessRunnerOptions } from '../../src/index.js'

type Variables = Readonly<Record<string, string | undefined>>

/** What a case may choose. */
export interface RunChoices {
  readonly access?: 'read' | 'write' | 'full'
  readonly isDurable?: boolean
  readonly isolation?: 'worktree'
}

/** Where a run takes place. */
export interface Place {
  readonly command: string
  readonly home: string
  readonly cwd: string
  readonly env: Variables
}

export interface TestedAgent {
  /** The name in `versions.json`. */
  readonly program: string
  /** The name on the command line, which several programs share. */
  readonly group: keyof typeof QUESTIONS
  readonly title: string
  readonly way: 'program' | 'ACP'
  /** The preset, for programs. */
  readonly preset?: 'claude-code' | 'codex' | 'gemini' | 'opencode' | 'qwen-code' | 'copilot'
  /** Whether it prints a command only when the command has ended. */
  readonly showsEndedCommands?: boolean
  /** Whether it says that its turn has ended when its API has failed, with the error as its answer. */
  readonly answersErrors?: boolean
  /** Writes its settings into the new HOME, and returns its variables. */
  setUp(home: string, url: string): Variables
  runner(place: Place, choices: RunChoices): OutputRunner
}

function claudeVariables(_home: string, url: string): Variables {
  return {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: 'scripted',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
    // Ten attempts take three minutes.
    CLAUDE_CODE_MAX_RETRIES: '1',
    // As root, it grants full access only in what it is told to be a sandbox.
    IS_SANDBOX: '1',
  }
}

function codexVariables(home: string, url: string): Variables {
  const folder = join(home, '.codex')
  mkdirSync(folder)
  const settings = [
    // One that it knows. It sends a warning about others, over ACP as a part of its answer.
    'model = "gpt-5.4"',
    'model_provider = "scripted"',
    '[analytics]',
    'enabled = false',
    '[model_providers.scripted]',
    'name = "scripted"',
    `base_url = "${url}/v1"`,
    'env_key = "SCRIPTED_KEY"',
    'wire_api = "responses"',
    'request_max_retries = 1',
    'stream_max_retries = 1',
  ]
  writeFileSync(join(folder, 'config.toml'), `${settings.join('\n')}\n`)
  return { CODEX_HOME: folder, SCRIPTED_KEY: 'scripted' }
}

function geminiVariables(home: string, url: string): Variables {
  const folder = join(home, '.gemini')
  mkdirSync(folder)
  const settings = {
    security: { auth: { selectedType: 'gemini-api-key' } },
    privacy: { usageStatisticsEnabled: false },
    // When it starts, it removes all sessions that were loaded over ACP, as if they were empty, unless they are kept forever.
    general: { enableAutoUpdate: false, maxAttempts: 2, sessionRetention: { enabled: false } },
    // With the model `auto`, it asks questions about the prompt that a script cannot answer.
    model: { name: 'gemini-2.5-flash' },
  }
  writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings))
  return { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: 'scripted' }
}

function opencodeVariables(home: string, url: string): Variables {
  const folder = join(home, '.config', 'opencode')
  mkdirSync(folder, { recursive: true })
  const provider = {
    npm: '@ai-sdk/openai-compatible',
    name: 'scripted',
    options: { baseURL: `${url}/v1`, apiKey: 'scripted' },
    models: { model: { name: 'model' } },
  }
  const settings = { autoupdate: false, share: 'disabled', model: 'scripted/model', provider: { scripted: provider } }
  writeFileSync(join(folder, 'opencode.json'), JSON.stringify(settings))
  return { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1' }
}

const qwenVariables = (_home: string, url: string): Variables => ({
  OPENAI_BASE_URL: `${url}/v1`,
  OPENAI_API_KEY: 'scripted',
  OPENAI_MODEL: 'scripted',
})

const copilotVariables = (_home: string, url: string): Variables => ({
  COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
  // It puts asterisks in place of the key wherever a text has it, also in the answer of the model.
  COPILOT_PROVIDER_API_KEY: 'key-of-the-suite',
  COPILOT_MODEL: 'model',
  COPILOT_OFFLINE: 'true',
  COPILOT_AUTO_UPDATE: 'false',
})

const asProgram =
  (agent: NonNullable<ProcessRunnerOptions['agent']>, trust = false) =>
  ({ command, cwd, env }: Place, { access, isDurable = false, isolation }: RunChoices): OutputRunner =>
    processRunner({
      command,
      agent,
      cwd,
      env,
      trust,
      survivesHost: isDurable,
      ...(access !== undefined && { access }),
      ...(isolation !== undefined && { isolation }),
    })

/** The settings of a session that stand for an access. */
type SessionSettings = Pick<AcpRunnerOptions, 'mode' | 'configOptions'>

interface AcpWay {
  /** The arguments with which the agent speaks ACP. */
  readonly args?: readonly string[]
  readonly write?: SessionSettings
  readonly full?: SessionSettings
  /** What it needs in order to ask for permission. */
  readonly asks?: Variables
}

const overAcp =
  (way: AcpWay) =>
  ({ command, cwd, env }: Place, { access = 'read' }: RunChoices): OutputRunner =>
    acpRunner({
      command,
      args: way.args ?? [],
      cwd,
      env: access === 'read' ? { ...env, ...way.asks } : env,
      permissions: access === 'read' ? 'ask' : 'allow',
      ...(access !== 'read' && way[access]),
    })

const colour = { question: 'Which colour?', header: 'Colour' }
const options = ['red', 'blue'].map((label) => ({ label, description: `the colour ${label}` }))

/** The tools with which the models of the agents ask the user. */
const QUESTIONS = {
  claude: { tool: 'AskUserQuestion', input: { questions: [{ ...colour, options, multiSelect: false }] } },
  codex: { tool: 'request_user_input', input: { questions: [{ ...colour, options, id: 'colour' }] } },
  gemini: { tool: 'ask_user', input: { questions: [{ ...colour, options, type: 'choice' }] } },
  opencode: { tool: 'question', input: { questions: [{ ...colour, options }] } },
  'qwen-code': { tool: 'ask_user_question', input: { questions: [{ ...colour, options, multiSelect: false }] } },
  copilot: { tool: 'ask_user', input: { question: 'Which colour?', choices: ['red', 'blue'] } },
} as const

/** The question that the model of an agent asks. One of the answers is `blue`. */
export const questionOf = ({ group }: TestedAgent): { readonly tool: string; readonly input: object } =>
  QUESTIONS[group]

export const AGENTS: readonly TestedAgent[] = [
  {
    program: 'claude',
    group: 'claude',
    title: 'Claude Code',
    way: 'program',
    preset: 'claude-code',
    setUp: claudeVariables,
    runner: asProgram('claude-code'),
  },
  {
    program: 'codex',
    group: 'codex',
    title: 'Codex',
    way: 'program',
    preset: 'codex',
    setUp: codexVariables,
    runner: asProgram('codex'),
  },
  {
    program: 'gemini',
    group: 'gemini',
    title: 'Gemini CLI',
    way: 'program',
    preset: 'gemini',
    setUp: geminiVariables,
    runner: asProgram('gemini', true),
  },
  {
    program: 'opencode',
    group: 'opencode',
    title: 'opencode',
    way: 'program',
    preset: 'opencode',
    showsEndedCommands: true,
    setUp: opencodeVariables,
    runner: asProgram('opencode'),
  },
  {
    program: 'qwen-code',
    group: 'qwen-code',
    title: 'Qwen Code',
    way: 'program',
    preset: 'qwen-code',
    setUp: qwenVariables,
    runner: asProgram('qwen-code'),
  },
  {
    program: 'copilot',
    group: 'copilot',
    title: 'Copilot CLI',
    way: 'program',
    preset: 'copilot',
    setUp: copilotVariables,
    runner: asProgram('copilot', true),
  },

  {
    program: 'claude-acp',
    group: 'claude',
    title: 'claude-agent-acp',
    way: 'ACP',
    setUp: claudeVariables,
    runner: overAcp({ write: { mode: 'acceptEdits' }, full: { mode: 'bypassPermissions' } }),
  },
  {
    program: 'codex-acp',
    group: 'codex',
    title: 'codex-acp',
    way: 'ACP',
    setUp: codexVariables,
    runner: overAcp({ write: { mode: 'auto' }, full: { mode: 'full-access' } }),
  },
  {
    program: 'gemini-acp',
    group: 'gemini',
    title: 'Gemini CLI',
    way: 'ACP',
    setUp: geminiVariables,
    runner: overAcp({ args: ['--acp', '--skip-trust'], write: { mode: 'autoEdit' }, full: { mode: 'yolo' } }),
  },
  {
    program: 'opencode-acp',
    group: 'opencode',
    title: 'opencode',
    way: 'ACP',
    setUp: opencodeVariables,
    runner: overAcp({ args: ['acp'], asks: { OPENCODE_PERMISSION: '{"edit":"ask","bash":"ask"}' } }),
  },
  {
    program: 'qwen-acp',
    group: 'qwen-code',
    title: 'Qwen Code',
    way: 'ACP',
    setUp: qwenVariables,
    runner: overAcp({ args: ['--acp'], write: { mode: 'auto-edit' }, full: { mode: 'yolo' } }),
  },
  {
    program: 'copilot-acp',
    group: 'copilot',
    title: 'Copilot CLI',
    way: 'ACP',
    answersErrors: true,
    setUp: copilotVariables,
    runner: overAcp({ args: ['--acp'], full: { configOptions: { allow_all: 'on' } } }),
  },
]
