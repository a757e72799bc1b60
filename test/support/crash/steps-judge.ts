/** Compares what the durable tasks of `npm run crash:steps` have done with what their runs got. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The steps of a task that work. */
export const PARTS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'] as const

export interface StepsVerdict {
  readonly tasks: number
  /** Tasks that failed because they were killed too often without getting on. */
  readonly givenUp: number
  readonly runs: number
  /** Steps that were done, and those of them that were done again because they were not stored. */
  readonly done: number
  readonly again: number
  /** What is wrong, in words. */
  readonly faults: readonly string[]
}

/** A step that a run has seen the result of is stored: from then on all runs see the same, and it is not done again. */
export function judgeSteps(folder: string): StepsVerdict {
  const linesOf = (name: string): string[][] => {
    const file = join(folder, name)
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
    return lines.map((line) => line.split(' '))
  }
  const faults: string[] = []
  const seen = new Map<string, string>()
  for (const [task, name, value = ''] of linesOf('seen')) {
    const key = `${task} ${name}`
    const before = seen.get(key)
    if (before !== undefined && before !== value) faults.push(`${key}: one run got ${before}, another ${value}`)
    seen.set(key, value)
  }
  const done = linesOf('done')
  for (const [key, value] of seen) {
    const results = done.filter(([task, name]) => `${task} ${name}` === key).map(([, , result]) => result)
    // What is done after a result was seen would be the last.
    if (results.length > 0 && results.at(-1) !== value) faults.push(`${key}: was done again after it was stored`)
  }
  const launched = [...new Set(linesOf('launches').map(([id = '']) => id))]
  const told = linesOf('transcript').flatMap(([, ...tasks]) => tasks)
  let givenUp = 0
  for (const id of launched) {
    const results = told.filter((each) => each.startsWith(`${id}=`))
    // It was killed five times in a row before it got on. What it had launched belongs to its owner then.
    if (results.join() === `${id}=failed:INTERRUPTED`) {
      givenUp += 1
      continue
    }
    if (results.join() !== `${id}=completed`) faults.push(`${id}: was told as ${results.join() || 'nothing'}`)
    for (const name of PARTS) if (!seen.has(`${id} ${name}`)) faults.push(`${id} ${name}: was never done`)
    if (seen.get(`${id} event`) !== id) faults.push(`${id}: got the event ${seen.get(`${id} event`)}`)
    const asked = new Set(linesOf('questions').flatMap(([task, question]) => (task === id ? [question] : [])))
    if (asked.size !== 1) faults.push(`${id}: asked ${[...asked].join() || 'nothing'}`)
    // An answer that was stored is the one that counts, and the last: nothing is asked after it.
    const answers = linesOf('answers').filter(([task]) => task === id)
    if (answers.length > 1) faults.push(`${id}: ${answers.length} answers were stored`)
    const [[, answer] = []] = answers
    if (answer !== undefined && seen.get(`${id} answer`) !== answer) faults.push(`${id}: the answer ${answer} was lost`)
    const child = seen.get(`${id} child`)
    if (seen.get(`${id} settled`) !== `${child}=completed`) faults.push(`${id}: its child ${child} was lost`)
  }
  const [left] = linesOf('left')
  if (left?.join() !== '0,0') faults.push(`active tasks and rows are left: ${left?.join()}`)
  return {
    tasks: launched.length,
    givenUp,
    runs: linesOf('runs').length,
    done: done.length,
    again: done.length - new Set(done.map(([task, name]) => `${task} ${name}`)).size,
    faults,
  }
}
