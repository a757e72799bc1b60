/** Judges what killed chat servers have done, by the turns in their store and by what their users have seen. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readStore } from '../../../src/store/index.js'
import { readOwnFile } from './faults.js'
import { begunIn, resultOf, USERS } from './script.js'
import type { PacedClient, SentMessage } from './clients.js'

export interface Verdict {
  readonly messages: number
  readonly tasks: number
  /** The tasks with the goal of an earlier task: their turn was killed after it had launched that, so it began anew. */
  readonly relaunched: number
  readonly turns: number
  readonly lost: readonly string[]
  readonly repeated: readonly string[]
  readonly marked: readonly string[]
  /** What one user has received of another. */
  readonly leaked: readonly string[]
}

interface Turn {
  readonly owner: string
  readonly seq: number
  readonly inputId?: string
  readonly json: string
}

const FILE = 'chat.db'

export function turnsIn(folder: string, isOwnFile = false): Turn[] {
  const file = join(folder, FILE)
  const turns = isOwnFile ? readOwnFile(file) : readStore(file).turns
  return turns.map(({ messages, ...turn }) => ({ ...turn, json: JSON.stringify(messages) }))
}

/** What a store has besides turns: messages without a turn, and tasks that are not over. */
export function openIn(folder: string): string[] {
  const { featureStates, tasks, deliveries } = readStore(join(folder, FILE))
  return [
    ...featureStates.filter(({ feature }) => feature === 'inputs').map(({ data }) => `input ${JSON.stringify(data)}`),
    ...tasks.filter(({ delivery }) => delivery !== 'delivered').map(({ id, delivery }) => `task ${id}: ${delivery}`),
    ...deliveries.map(({ id }) => `delivery ${id}`),
  ]
}

export function judge(folder: string, sent: ReadonlyMap<string, readonly SentMessage[]>, isOwnFile = false): Verdict {
  const turns = turnsIn(folder, isOwnFile)
  const lost: string[] = []
  const repeated: string[] = []
  const count = (what: string, found: number): void => {
    if (found === 0) lost.push(what)
    if (found > 1) repeated.push(`${what}: ${found} times`)
  }
  for (const [user, messages] of sent) {
    for (const { id, text } of messages) {
      const of = turns.filter(({ owner, inputId }) => owner === user && inputId === id)
      count(`${user} ${id}`, of.length)
      const asked = turns.filter(({ json }) => json.startsWith(`[{"role":"user","content":${JSON.stringify(text)}}`))
      if (asked.length > of.length) repeated.push(`${user} ${id}: ${asked.length} turns with its text`)
    }
  }
  const begun = existsSync(begunIn(folder)) ? readFileSync(begunIn(folder), 'utf8').split('\n').filter(Boolean) : []
  const goals = new Map(begun.map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' '))]))
  const tasks = [...goals.keys()]
  for (const id of tasks) count(`result of ${id}`, turns.filter(({ json }) => json.includes(resultOf(id))).length)
  return {
    messages: [...sent.values()].flat().length,
    tasks: tasks.length,
    relaunched: tasks.length - new Set(goals.values()).size,
    turns: turns.length,
    lost,
    repeated,
    marked: turns.filter(({ json }) => json.includes('possible repeat')).map(({ json }) => json),
    leaked: turns.flatMap(({ owner, json }) => leaksIn(owner, json)),
  }
}

/** Compares what a user has seen with the turns that are kept. */
export function judgeSeen({ user, turns }: PacedClient, kept: readonly Turn[]): string[] {
  const mine = kept.filter(({ owner }) => owner === user)
  const seen = turns.map(({ seq, id }) => `${user} ${seq} ${id ?? ''}`)
  const due = mine.map(({ seq, inputId }) => `${user} ${seq} ${inputId ?? ''}`)
  return [
    ...due.filter((turn) => !seen.includes(turn)).map((turn) => `not seen: ${turn}`),
    ...seen.filter((turn, n) => !due.includes(turn) || seen.indexOf(turn) !== n).map((turn) => `seen wrongly: ${turn}`),
    ...turns.flatMap(({ texts }) => leaksIn(user, texts.join())),
  ]
}

const leaksIn = (owner: string, text: string): string[] =>
  USERS.filter((user) => user !== owner && text.includes(`@${user} `)).map((user) => `${owner} has of ${user}: ${text}`)
