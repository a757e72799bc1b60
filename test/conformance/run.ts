/**
 * `npm run conformance`: the tasks scenarios of MCP's official conformance suite against a server that is built from
 * `src/mcp`. The suite needs Node 22, which npx brings for it alone. Fails unless every check that can run passes, and at
 * least as many as are known.
 */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createBackend } from '../../src/mcp/backend.js'
import { listenWith } from '../../src/mcp/http.js'
import { createMcpApp } from '../../src/mcp/mcp-app.js'
import { createFixtureTools } from './fixture-tools.js'

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const SCENARIOS = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-status-notifications',
  'tasks-required-task-error',
  'tasks-mrtr-composition',
]
const KNOWN_CHECKS = 44
const SCENARIO_MS = 120_000

interface Check {
  readonly id: string
  readonly status: string
  readonly errorMessage?: string
}

const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-conformance-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

const backend = createBackend({
  config: { maxAsyncTasks: -1, maxTimeoutSeconds: -1 },
  folder,
  writeLog: () => undefined,
})
const app = createMcpApp(backend, (owner) => createFixtureTools(backend, owner))
const server = await listenWith(app, { port: 0 })

const totals = { passed: 0, failed: 0, skipped: 0 }
for (const scenario of SCENARIOS) {
  const output = join(folder, scenario)
  const { code, said } = await run(scenario, output)
  const checks = readChecks(output)
  const of = (status: string): Check[] => checks.filter((check) => check.status === status)
  const passed = of('SUCCESS').length
  const failed = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
  const skipped = of('SKIPPED').length
  totals.passed += passed
  totals.skipped += skipped
  totals.failed += failed.length
  console.log(`${scenario}: ${passed} passed, ${failed.length} failed, ${skipped} skipped`)
  for (const { id, errorMessage = 'no message' } of failed) console.log(`  ${id}: ${errorMessage}`)
  if (checks.length === 0 || (code !== 0 && failed.length === 0)) {
    totals.failed += 1
    console.log(`  the suite ended with ${code ?? 'a signal'} and ${checks.length} checks:\n${said}`)
  }
}
await server.close()
console.log(`conformance: ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`)
if (totals.passed < KNOWN_CHECKS) console.error(`conformance: expected at least ${KNOWN_CHECKS} checks to pass`)
process.exitCode = totals.failed === 0 && totals.passed >= KNOWN_CHECKS ? 0 : 1

function run(scenario: string, output: string): Promise<{ code: number | null; said: string }> {
  const command = ['-y', '-p', 'node@22', '-p', SUITE, 'conformance', 'server']
  const child = spawn('npx', [...command, '--url', server.url, '--scenario', scenario, '-o', output], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: SCENARIO_MS,
  })
  const said: string[] = []
  child.stdout.on('data', (chunk: Buffer) => said.push(chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => said.push(chunk.toString()))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, said: said.join('') }))
  })
}

/** Each run writes its checks to a file of its own. */
function readChecks(output: string): Check[] {
  try {
    return readdirSync(output, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('checks.json'))
      .flatMap((name) => JSON.parse(readFileSync(join(output, name), 'utf8')) as Check[])
  } catch {
    return []
  }
}
