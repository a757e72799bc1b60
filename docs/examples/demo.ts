/**
 * An agent launches background tasks that run real programs, is sometimes busy and sometimes idle, and receives every result once.
 * At the end the demo prints its ledger and the verdict of a recorder that logs every delivery; the exit code is 0 if each result was
 * delivered exactly once.
 *
 * Run it with `npm run demo`, or with `npm run demo -- --crash`: then a host with a store dies in the middle, and the next one goes on.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createAgentTasks, disposeOnSignals, runCommandLine } from 'agent-tasks'
import { recordDeliveryLog } from 'agent-tasks/testing/ledger'
import { filter, firstValueFrom } from 'rxjs'
import { createAgent } from './demo/agent.js'
import { runCrashDemo } from './demo/crash.js'
import { createDisplay } from './demo/display.js'
import { describeVerdict, keepLedger, type LedgerSummary } from './demo/ledger.js'
import { subagents } from './demo/subagents.js'

if (process.argv.includes('--crash')) {
  process.exit(await runCrashDemo())
}

const startedAt = Date.now()
const tasks = createAgentTasks({
  maxAsyncTasks: 10,
  subagents,
  autoTrigger: { coalesceMs: 50, retry: { initialMs: 300 } },
  onError: (error, { source }) =>
    display.say(`reported (${source}): ${error instanceof Error ? error.message : String(error)}`),
})
disposeOnSignals(tasks)
const manager = tasks.getAsyncTaskManager()
const display = createDisplay(manager, startedAt)
const ledger = keepLedger(manager)
const recorder = recordDeliveryLog(tasks)

async function launch(name: string, goal: string, more: { timeout_seconds?: number } = {}): Promise<string> {
  const result = await tasks.tools.task.execute({ subagent_name: name, goal_prompt: goal, async: true, ...more })
  if (result.error !== undefined) throw new Error(result.llmContent)
  return String(result.metadata?.['agentId'])
}

/** Resolves when the task ends. Call it before that. */
const ended = (id: string): Promise<unknown> => firstValueFrom(manager.settled$.pipe(filter((task) => task.id === id)))

function accept(text: string): void {
  ledger.accept(text)
  display.say(`the agent accepted ${ledger.idsIn(text).length} result(s): ${ledger.idsIn(text).join(', ')}`)
}

let hasRefused = false
const agent = createAgent({
  onAccepted: accept,
  onResults: async (_text, taskIds) => {
    if (taskIds.includes(historian) && !hasRefused) {
      hasRefused = true
      throw new Error('the model is overloaded')
    }
    if (taskIds.includes(twins[0] ?? '')) {
      display.say('while this delivery is in flight, the agent launches git and waits for it to end')
      const git = await launch('git', 'which version is this?')
      await ended(git)
    }
  },
})

display.say('the agent launches its background tasks')
const historian = await launch('historian', 'how many lines were ever added here?')
await launch('hasher', 'hash every file of this repository')
await launch('mathematician', '4')
await launch('clumsy', 'read the settings')
await launch('sleeper', 'wait for the answer', { timeout_seconds: 3 })
const stubborn = await launch('stubborn', 'do not stop')
const moment = String(Date.now() + 3_300)
const twins = [await launch('twin', moment), await launch('twin', moment)]
await launch('npm', 'which version is this?')
const brief = await launch('mathematician', '2')

const unsubscribe = tasks.setupAsyncTaskAutoTrigger(agent.busy$, recorder.wrapTurn(agent.triggerAgentTurn))

display.say('the user talks to the agent for a second; what ends meanwhile waits')
await agent.whileBusy(() => pause(1_000))
await pause(700)

display.say(`the user types /task end ${stubborn}`)
display.say(runCommandLine(tasks.commands, `/task end ${stubborn}`)?.text ?? 'no such command')

display.say('the user is asked for a confirmation; the turn that follows carries what has ended by then')
await agent.whileBusy(async () => {
  await ended(brief)
  const { reminder } = tasks.beforeTurn()
  await pause(200)
  if (reminder !== undefined) accept(reminder.text)
  tasks.afterTurn({ accepted: true })
})

await manager.onIdle()
const verdict = recorder.check()
unsubscribe()
display.close()
await tasks.dispose()

const summary: LedgerSummary = ledger.summary()
console.log('\nLedger')
for (const [name, count] of Object.entries(summary)) console.log(`  ${name.padEnd(11)} ${String(count).padStart(3)}`)
const isKept = summary.lost === 0 && summary.duplicated === 0 && summary.owed === 0
console.log(isKept ? '\nEvery result was delivered exactly once.' : '\nNot every result was delivered exactly once.')
console.log(describeVerdict(verdict))
process.exitCode = isKept && verdict.isClean ? 0 : 1
