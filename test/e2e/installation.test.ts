// Installing without a registry's copy of this package: from the tarball of `npm pack`, and from a git URL, which builds it. README's first program runs.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { transform } from 'esbuild'
import { expect, it, onTestFinished } from 'vitest'
import { readBlocks, readPrograms } from '../../scripts/doc-blocks.js'

const root = process.cwd()
const execute = promisify(execFile)

/** A git dependency installs its development dependencies and is built. */
const LIMIT_MS = 900_000

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-install-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Runs npm as a user does: this test may itself run in an npm script, whose variables are of another package. */
async function npm(cwd: string, ...args: string[]): Promise<string> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|command)/.test(name) && name !== 'INIT_CWD' && name !== 'NODE_ENV',
  )
  const env = Object.fromEntries(inherited)
  const { stdout } = await execute('npm', args, { cwd, env, timeout: LIMIT_MS, maxBuffer: 64 * 1024 * 1024 })
  return stdout
}

/** Installs the package in an empty project, with the SQLite that README names, and runs the first program of README there, twice. */
async function runFirstProgram(specifier: string): Promise<string> {
  const project = emptyFolder()
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  await npm(
    project,
    'install',
    '--prefer-offline',
    '--loglevel=error',
    '--allow-git=root',
    specifier,
    '@photostructure/sqlite@1.2',
  )
  const readme = readPrograms(readBlocks('README.md', readFileSync(join(root, 'README.md'), 'utf8')))
  const program = readme.find(({ text }) => text.includes("from 'agent-tasks'"))
  if (program === undefined) throw new Error('README has no program that imports agent-tasks')
  const { code } = await transform(program.text, { loader: 'ts', format: 'esm' })
  writeFileSync(join(project, 'program.js'), code)
  const run = () => execute(process.execPath, ['program.js'], { cwd: project, timeout: 60_000 })
  const { stdout, stderr } = await run()
  expect(stderr).toBe('')
  // Its store has the turns of the first run.
  expect(await run()).toEqual({ stdout: '', stderr: '' })
  return stdout
}

async function pack(folder: string) {
  const packed = await npm(root, 'pack', '--json', '--pack-destination', folder)
  const [tarball] = JSON.parse(packed) as { readonly filename: string; readonly files: { readonly path: string }[] }[]
  return tarball
}

/** The oldest SDKs of the peer ranges, each with a tool call of a model as that SDK makes it. `npm run package` has the newest. */
const oldSdks = `
import { Agent, RunContext } from '@openai/agents'
import { createAgentTasks } from 'agent-tasks'
import { toAiSdkTools } from 'agent-tasks/adapters/ai-sdk'
import { toLangChainTools } from 'agent-tasks/adapters/langchain'
import { toOpenAIAgentsTools } from 'agent-tasks/adapters/openai-agents'
const { tools, dispose } = createAgentTasks({ subagents: { echo: ({ goal }) => goal } })
const input = { subagent_name: 'echo', goal_prompt: 'it works' }
const { task } = toAiSdkTools(tools)
const output = await task.execute(input, { toolCallId: 'c1', messages: [] })
console.log('ai', task.toModelOutput({ toolCallId: 'c1', input, output }).value.includes('it works'))
const { tools: [agentTool] } = new Agent({ name: 'A', tools: toOpenAIAgentsTools(tools) })
console.log('openai', (await agentTool.invoke(new RunContext({}), JSON.stringify(input))).includes('it works'))
const message = await toLangChainTools(tools)[0].invoke({ type: 'tool_call', id: 'c1', name: 'task', args: input })
console.log('langchain', message.content.includes('it works'))
await dispose()
`

it(
  'the package installs beside the oldest SDKs of its peer ranges, and its adapters work with them',
  { timeout: LIMIT_MS },
  async () => {
    const project = emptyFolder()
    const tarball = await pack(project)
    writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
    const options = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
    await npm(project, 'install', ...options, 'ai@6.0.0', '@openai/agents@0.19.0', '@langchain/core@0.3.58')
    await npm(project, 'install', ...options, join(project, tarball?.filename ?? ''))
    writeFileSync(join(project, 'program.js'), oldSdks)
    const { stdout } = await execute(process.execPath, ['program.js'], { cwd: project, timeout: 60_000 })
    expect(stdout).toBe('ai true\nopenai true\nlangchain true\n')
  },
)

it('the tarball of npm pack has what was built, and runs', { timeout: LIMIT_MS }, async () => {
  const folder = emptyFolder()
  const tarball = await pack(folder)
  expect(tarball?.files.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['dist/src/index.js', 'dist/src/cli/main.js', 'dist/page/index.html']),
  )
  expect(await runFirstProgram(join(folder, tarball?.filename ?? ''))).not.toBe('')
})

it('a git URL is built while it is installed, and runs', { timeout: LIMIT_MS }, async () => {
  const repository = join(emptyFolder(), 'agent-tasks.git')
  await execute('git', ['clone', '--quiet', '--bare', root, repository])
  expect(await runFirstProgram(`git+file://${repository}`)).not.toBe('')
})
