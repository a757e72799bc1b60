/** Compares what the durable tasks of `npm run crash:steps` have done with what their runs received. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The names of the ten steps that do work. */
export const PARTS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'] as const

export interface StepsVerdict {
  readonly tasks: number
  /** Tasks that failed because they were killed too often without making progress. */
  readonly givenUp: number
  readonly runs: number
  /** How many steps were done (`done`), and how many of them again, because they had not been stored (`again`). */
  readonly done: number
  readonly again: number
  /** A text for each fault. */
  readonly faults: readonly string[]
}

/**
 * Judges the records. If a run has received the result of a step, the step is stored. From then on all runs must receive the same result, and the step
 * must not be done again.
 */
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
    // If the step was done after its result was seen, the last result would be another one.
    if (results.length > 0 && results.at(-1) !== value) faults.push(`${key}: was done again after it was stored`)
  }
  const launched = [...new Set(linesOf('launches').map(([id = '']) => id))]
  const told = linesOf('transcript').flatMap(([, ...tasks]) => tasks)
  let givenUp = 0
  for (const id of launched) {
    const results = told.filter((each) => each.startsWith(`${id}=`))
    // The task was killed five times in a row before it made progress. What it had launched then belongs to its owner.
    if (results.join() === `${id}=failed:INTERRUPTED`) {
      givenUp += 1
      continue
    }
    if (results.join() !== `${id}=completed`) faults.push(`${id}: was told as ${results.join() || 'nothing'}`)
    for (const name of PARTS) if (!seen.has(`${id} ${name}`)) faults.push(`${id} ${name}: was never done`)
    if (seen.get(`${id} event`) !== id) faults.push(`${id}: got the event ${seen.get(`${id} event`)}`)
    const asked = new Set(linesOf('questions').flatMap(([task, question]) => (task === id ? [question] : [])))
    if (asked.size !== 1) faults.push(`${id}: asked ${[...asked].join() || 'nothing'}`)
    // A stored answer counts. Nothing may be asked or answered after it.
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
