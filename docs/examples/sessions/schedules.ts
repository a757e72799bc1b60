/** A scripted session: an agent asks to be woken, has a check run again and again, and cancels it; a person looks at what is scheduled. */
import assert from 'node:assert/strict'
import { createAgentTasks, runCommandLine } from 'agent-tasks'

let checks = 0
const turns: string[] = []
const tasks = createAgentTasks({
  schedules: { minPeriodMs: 1000 },
  subagents: {
    check: () => {
      checks += 1
      return `check ${checks}: all tests pass`
    },
  },
  isAgentBusy: () => false,
  triggerAgentTurn: (text) => {
    turns.push(text)
    say('a turn of the agent begins', text)
  },
})
const { schedule } = tasks.tools

const reminder = await schedule.execute({
  in_seconds: 0.2,
  time_zone: 'Europe/Berlin',
  message: 'Ask the user whether the release may go out.',
})
say('the agent reads', reminder.llmContent)
assert.match(
  reminder.llmContent,
  /^Scheduled schedule-\S+ \(once\), next .* \(Europe\/Berlin\) - message: Ask the user/,
)

const check = await schedule.execute({ every_seconds: 1, subagent_name: 'check', goal_prompt: 'run all tests' })
say('the agent reads', check.llmContent)
say('a person reads', runCommandLine(tasks.commands, '/schedules')?.text ?? '')

await until(() => turns.some((text) => text.includes('whether the release may go out')))
await until(() => turns.some((text) => text.includes('check 2: all tests pass')))

const cancelled = await schedule.execute({ action: 'cancel', schedule_id: String(check.metadata?.['id']) })
say('the agent reads', cancelled.llmContent)
const list = await schedule.execute({ action: 'list' })
say('the agent reads', list.llmContent)
assert.equal(list.llmContent, 'Nothing is scheduled.')

const refused = await schedule.execute({ every_seconds: 0.5, message: 'too often' })
say('the agent reads', refused.llmContent)
assert.match(refused.llmContent, /params\.every_seconds: got 0\.5 s, expected at least 1 s/)
await tasks.dispose()

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 20))
}

function say(who: string, text: string): void {
  console.log(`--- ${who}\n${text}\n`)
}
