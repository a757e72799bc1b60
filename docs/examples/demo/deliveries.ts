/** The demo without a store: tasks that end while the agent is busy, idle, or in the middle of a turn. */
import { setTimeout as pause } from 'node:timers/promises'
import { createAgentTasks, disposeOnSignals, runCommandLine } from 'agent-tasks'
import { recordDeliveryLog } from 'agent-tasks/testing/ledger'
import { filter, firstValueFrom } from 'rxjs'
import { createAgent } from './agent.js'
import { createDisplay } from './display.js'
import { describeVerdict, keepLedger, type LedgerSummary } from './ledger.js'
import { subagents } from './subagents.js'

/** Runs the demo; returns its exit code. */
export async function runDeliveryDemo(): Promise<number> {
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
  const ended = (id: string): Promise<unknown> =>
    firstValueFrom(manager.settled$.pipe(filter((task) => task.id === id)))

  let isFirst = true
  function accept(text: string): void {
    if (isFirst) display.say(`the agent reads this message:\n${text.replaceAll(/^/gm, '        | ')}`)
    isFirst = false
    ledger.accept(text)
    display.say(`the agent accepted ${ledger.idsIn(text).length} result(s): ${ledger.idsIn(text).join(', ')}`)
  }

  const twins: string[] = []
  let isRefusing = false
  const agent = createAgent({
    onAccepted: accept,
    onResults: async (_text, taskIds) => {
      if (isRefusing) {
        isRefusing = false
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
  await launch('historian', 'how many lines were ever added here?')
  await launch('hasher', 'hash every file of this repository')
  await launch('mathematician', '4')
  await launch('clumsy', 'read the settings')
  await launch('sleeper', 'wait for the answer', { timeout_seconds: 3 })
  const stubborn = await launch('stubborn', 'do not stop')
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
  // Not earlier: the turn above would carry what was refused, and only the turns of the auto-trigger are known to the recorder.
  isRefusing = true

  display.say('the agent launches two tasks that end at the same moment')
  const moment = String(Date.now() + 1_500)
  twins.push(await launch('twin', moment), await launch('twin', moment))

  await manager.onIdle()
  const verdict = recorder.check()
  unsubscribe()
  display.close()
  await tasks.dispose()
  const isKept = printLedger(ledger.summary())
  console.log(describeVerdict(verdict))
  return isKept && verdict.isClean ? 0 : 1
}

/** What each count means where it may look wrong. */
const meant: Partial<Record<keyof LedgerSummary, string>> = {
  failed: 'on purpose: clumsy and sleeper',
  cancelled: 'on purpose: stubborn',
  delivered: 'the user who cancelled a task knows its result',
}

function printLedger(summary: LedgerSummary): boolean {
  console.log('\nLedger')
  for (const [name, count] of Object.entries(summary)) {
    const note = meant[name as keyof LedgerSummary]
    console.log(`  ${name.padEnd(11)} ${String(count).padStart(3)}${note === undefined ? '' : `  (${note})`}`)
  }
  const isKept = summary.lost === 0 && summary.duplicated === 0 && summary.owed === 0
  console.log(isKept ? '\nEvery result was delivered exactly once.' : '\nNot every result was delivered exactly once.')
  return isKept
}
