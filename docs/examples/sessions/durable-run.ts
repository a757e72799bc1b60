/** A scripted session: a durable run is killed three times, and goes on: while it works, while it sleeps, and while it asks. */
import assert from 'node:assert/strict'
import { createAgentTasks, type RunContext } from 'agent-tasks'
import { memoryStore, type MemoryStore } from 'agent-tasks/store'

const done: string[] = []
let isPowerOn = false

const release = async ({ step, sleep, waitFor, ask }: RunContext): Promise<string> => {
  const version = await step('build', () => {
    done.push('build')
    return '1.4.0'
  })
  await step('test', async () => {
    done.push('test')
    // The first process dies here.
    if (!isPowerOn) await new Promise(() => undefined)
  })
  await sleep(100)
  const { content } = await ask({ message: `Release ${version}?`, choices: ['yes', 'no'] })
  const approval = await waitFor<{ by: string }>('approved')
  await step('publish', () => done.push('publish'))
  return `${version}: ${String(content?.['answer'])}, approved by ${approval?.by ?? 'nobody'}`
}

/** A process, on what the last one has stored. */
const start = async (store: MemoryStore) => {
  const tasks = createAgentTasks({
    store,
    subagents: {
      release: { durable: true, releasesSlot: true, run: (_input: unknown, context: RunContext) => release(context) },
    },
  })
  await tasks.recovered
  return { tasks, store, kill: () => store.copy() }
}
const wait = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms))

const first = await start(memoryStore())
const { id } = first.tasks.launch('release', 'ship it')
await wait(50)
say('done so far', done.join(', '))
assert.deepEqual(done, ['build', 'test'])

say('the process', 'is killed while the tests run')
const afterTests = first.kill()
isPowerOn = true
const second = await start(afterTests)
await wait(50)
say('done so far', done.join(', '))
// The build was stored. The tests had not ended: they run again.
assert.deepEqual(done, ['build', 'test', 'test'])

say('the process', 'is killed while its run sleeps')
const third = await start(second.kill())
assert.equal(third.tasks.manager.getTask(id)?.status, 'queued')
await wait(200)
const asked = third.tasks.beforeTurn()
await asked.reminder?.stored
say('the agent reads', asked.reminder?.text ?? '')
assert.match(asked.reminder?.text ?? '', /waits for an answer to question-1/)

say('the process', 'is killed before anyone knows whether the agent has read it')
const last = await start(third.kill())
const again = last.tasks.beforeTurn()
await again.reminder?.stored
say('the agent reads', again.reminder?.text ?? '')
assert.match(again.reminder?.text ?? '', /possible repeat/)
const answered = await last.tasks.tools.check_async_tasks.execute({ task_id: id, action: 'answer', answer: 'yes' })
say('the agent reads', answered.llmContent)
last.tasks.afterTurn({ accepted: true })

const got = await last.tasks.emit('approved', { by: 'Ada' })
assert.deepEqual(got, [id])
const { settled } = await last.tasks.manager.waitFor([id])
say('the result', String(settled[0]?.output?.final_message))
assert.equal(settled[0]?.output?.final_message, '1.4.0: yes, approved by Ada')
assert.deepEqual(done, ['build', 'test', 'test', 'publish'])
for (const { tasks } of [first, second, third, last]) void tasks.dispose()
process.exit(0)

function say(who: string, text: string): void {
  console.log(`\n${who}:\n${text}`)
}
