/**
 * Judges the stops of the hosts of `npm run stops`.
 *
 * Right before each stop the host is frozen, and its store is copied: a kill at this moment would leave this copy (`before`). Then the host is stopped.
 * What it leaves (`after`), what the next process finds, and what the agent hears must be what follows from the copy. Three things may happen between
 * the copy and the end of the host: a run ends with its whole result, a run begins, and a task is launched.
 */
import type { StoreContents } from 'agent-tasks/store'
import { kindOf, type Found } from './kinds.js'
import { linesOf, notesOf } from './notes.js'

type StoredTask = StoreContents['tasks'][number]

/** One stop. `after` is what the next process finds. */
export interface Stop {
  readonly life: number
  readonly isKill: boolean
  readonly before: StoreContents
  readonly after: StoreContents
}

/** A text for each fault. All lists must be empty. */
export interface Verdict {
  /** The number of tasks. */
  readonly tasks: number
  /** How many of them were completed by the stop. */
  readonly inGrace: number
  readonly differences: readonly string[]
  /** What the agent was told twice, and what ran twice. */
  readonly repeats: readonly string[]
  /** What the agent was never told, and rows that a stop has removed. */
  readonly losses: readonly string[]
}

const hasEnded = ({ status }: StoredTask): boolean => status !== 'running' && status !== 'queued'
const goalOf = ({ record }: StoredTask): string => String(record['goalPrompt'])
const kindIn = ({ record }: StoredTask) => kindOf(record['subagentName'])
const isRepeatable = (task: StoredTask): boolean => task.status === 'running' && kindIn(task).found === 'retried'

function isWhole(task: StoredTask): boolean {
  const { final_message: text } = Object(task.record['output']) as Record<string, unknown>
  return task.status === 'completed' && typeof text === 'string' && text.includes(goalOf(task))
}

/**
 * What the next process must find of a task.
 * @param tokens the runs whose programs have begun
 */
function expectedOf(task: StoredTask, tokens: ReadonlySet<unknown>): Found | undefined {
  if (hasEnded(task)) return undefined
  if (task.status === 'queued') return 'queued'
  // Its run had not begun, so the next process begins it.
  if (task.run?.['hasNotBegun'] === true) return 'retried'
  // A program is stored before it begins. One that had not begun is started by the next process.
  const { token } = Object(task.run?.['program']) as { readonly token?: unknown }
  if (kindIn(task).survives === true && !tokens.has(token)) return 'retried'
  return kindIn(task).found
}

/** @param folder with the notes of all processes of one store, the last of which has ended by itself */
export function judge(folder: string, stops: readonly Stop[]): Verdict {
  const begins = notesOf(folder, 'begins')
  const tokens = new Set(linesOf(folder, 'tokens').map((line) => line.split(' ')[1]))
  const found = notesOf(folder, 'found')
  const transcript = notesOf(folder, 'transcript')
  const differences: string[] = []
  const repeats: string[] = []
  const losses: string[] = []
  const ids = new Set(notesOf(folder, 'launches').map(({ id }) => id))
  /** How each task must end. */
  const ends = new Map<string, string>()
  let inGrace = 0
  if (linesOf(folder, 'over').length !== 1) differences.push('the last process has not ended by itself')

  for (const { life, isKill, before, after } of stops) {
    const hasBegun = (id: string): boolean => begins.some((begin) => begin.life === life && begin.id === id)
    const next = found.find((each) => each.life === life + 1)
    const left = new Map(after.tasks.map((task) => [task.id, task]))
    if (isKill && JSON.stringify(before) !== JSON.stringify(after)) {
      differences.push('the copy is not what a kill leaves')
    }
    for (const task of before.tasks) {
      const { id } = task
      const name = `life ${life}: ${String(task.record['subagentName'])} ${id}`
      const now = left.get(id)
      ids.add(id)
      if (now === undefined) {
        // A delivered task may leave the store; whether it was told is judged below.
        if (!hasEnded(task)) losses.push(`${name}: its row is gone`)
        continue
      }
      if (!hasEnded(task) && isWhole(now)) {
        inGrace += 1
        ends.set(id, 'completed')
        continue
      }
      const earlier = stops.find((each) => each.life === life - 1)?.after.tasks.find((each) => each.id === id)
      const due = earlier && expectedOf(earlier, tokens)
      // This process was still taking over when it was stopped: it owed this to the stop before, which has been judged.
      if ((due === 'interrupted' && now.status === 'failed') || (due === 'retried' && now.status === 'queued')) {
        ends.set(id, now.status === 'failed' ? 'failed' : 'completed')
        continue
      }
      const hasProgressed = task.status === 'queued' && now.status === 'running'
      if (hasProgressed ? !hasBegun(id) && now.run?.['hasNotBegun'] !== true : now.status !== task.status) {
        differences.push(`${name}: was ${task.status}, and is ${now.status}`)
        continue
      }
      if (!hasProgressed && now.attempt !== task.attempt) {
        differences.push(`${name}: attempt ${task.attempt} is now ${now.attempt}`)
      }
      const expected = expectedOf(now, tokens)
      ends.set(id, hasEnded(now) ? now.status : expected === 'interrupted' ? 'failed' : 'completed')
      const lists =
        next && (['adopted', 'queued', 'retried', 'interrupted'] as const).filter((list) => next[list].includes(id))
      if (lists !== undefined && lists.join() !== (expected ?? '')) {
        differences.push(
          `${name}: should be ${expected ?? 'ended'}, and the next process says ${lists.join() || 'nothing'}`,
        )
      }
      const again = begins.find((begin) => begin.life === life + 1 && begin.id === id)
      if (!isRepeatable(now) || again === undefined || kindIn(now).found !== expected) continue
      // Only a kill uses up an attempt. A durable run that waited for something goes on in its attempt also after one.
      const isUsed = isKill && now.run?.['hasNotBegun'] !== true
      const attempts = [now.attempt + (isUsed ? 1 : 0), ...(kindIn(now).durable === true ? [now.attempt] : [])]
      if (!attempts.includes(again.attempt)) differences.push(`${name}: runs as attempt ${again.attempt}`)
    }
    for (const task of after.tasks) {
      if (before.tasks.some(({ id }) => id === task.id)) continue
      ids.add(task.id)
      // A polite stop ends nothing, also not what was launched meanwhile.
      if (hasEnded(task) && !isWhole(task)) {
        differences.push(`life ${life}: ${task.id} was launched and is ${task.status}`)
      }
      ends.set(task.id, !hasEnded(task) && expectedOf(task, tokens) === 'interrupted' ? 'failed' : 'completed')
    }
    for (const row of before.featureStates) {
      if (row.feature !== 'steps') continue
      const task = left.get(String(row.data['taskId']))
      if (task === undefined || hasEnded(task)) continue
      const kept = after.featureStates.find(({ id }) => id === row.id)
      const isKept =
        row.data['endedAt'] === undefined ? kept !== undefined : JSON.stringify(kept) === JSON.stringify(row)
      if (!isKept) losses.push(`life ${life}: the step ${row.id} of ${task.id}`)
    }
  }

  const all = transcript.flatMap(({ tasks }) => tasks)
  for (const id of ids) {
    const [one, ...others] = all.filter((task) => task.id === id)
    if (one === undefined) losses.push(`${id}: was never told`)
    if (others.length > 0) repeats.push(`${id}: was told ${others.length + 1} times`)
    const status = ends.get(id) ?? 'completed'
    if (one !== undefined && one.status !== status) {
      differences.push(`${id}: was told as ${one.status} and not ${status}`)
    }
    if (one?.status === 'completed' && !one.text.includes('goal')) differences.push(`${id}: was told as ${one.text}`)
  }
  // A run that begins again asks again. A durable run asks once.
  const askers = new Map(stops.flatMap(({ after }) => after.tasks.map((task) => [task.id, kindIn(task)])))
  const asked = transcript.flatMap(({ life, questions }) =>
    questions.map((question) =>
      askers.get(question.split(' ')[0] ?? '')?.durable === true ? question : `life ${life}: ${question}`,
    ),
  )
  for (const each of new Set(asked)) {
    if (asked.filter((other) => other === each).length > 1) repeats.push(`the question ${each}`)
  }
  const runs = begins.map(({ life, id }) => `life ${life}: ${id}`)
  for (const run of new Set(runs)) {
    if (runs.filter((each) => each === run).length > 1) repeats.push(`${run} has run twice`)
  }
  return { tasks: ids.size, inGrace, differences, repeats, losses }
}
