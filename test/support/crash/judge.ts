/** Compares the tasks that the hosts of `npm run crash` have launched with the results in their transcript. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The maximum number of runs of a task. */
export const MAX_ATTEMPTS = 3

/** The lines in a transcript for the start of a host (`BEGIN`), and for its clean end (`END`). */
export const BEGIN = 'begin'
export const END = 'end'

/** The figures of one series of rounds. */
export interface Figures {
  readonly launches: number
  readonly ends: number
  readonly deliveries: number
  readonly cancelled: number
  readonly adopted: number
  readonly retried: number
  readonly interrupted: number
  readonly possibleRepeats: number
  readonly toldTwice: number
  readonly cleanEnds: number
}

/** The ids of tasks with a fault. All lists must be empty. */
export interface Faults {
  /** Tasks that were launched and not cancelled, but whose result was never delivered. */
  readonly lost: readonly string[]
  /**
   * Tasks whose result was delivered more than once without the mark of a possible repeat. If the hosts may read the transcript, no result may be
   * delivered twice at all.
   */
  readonly unmarked: readonly string[]
  /**
   * Tasks whose result was delivered again after it was certain: a host that delivered it had ended cleanly, or a message with the repeat was accepted.
   */
  readonly unconfirmed: readonly string[]
  /** Tasks whose result was delivered although they were cancelled. */
  readonly toldCancelled: readonly string[]
  /** Attempts that ran again although no clean end had stopped them, or that were too many. */
  readonly miscounted: readonly string[]
  /** Tasks that ended and are not in the history, or are there twice. */
  readonly notInHistory: readonly string[]
}

/** @param isBlind whether the hosts could not read the transcript */
export function judge(folder: string, isBlind: boolean): { readonly figures: Figures; readonly faults: Faults } {
  const linesOf = (name: string): string[] => {
    const file = join(folder, name)
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
  }
  const launched = linesOf('launches')
  const transcript = linesOf('transcript')
  const messages = transcript.filter((line) => line !== BEGIN && line !== END).map((line) => line.split(' ').slice(1))
  const tellings = new Map<string, { readonly isMarked: boolean }[]>()
  for (const [id = '', , mark] of messages.flat().map((task) => task.split('='))) {
    tellings.set(id, [...(tellings.get(id) ?? []), { isMarked: mark === 'repeat' }])
  }
  const cancellations = linesOf('cancellations').map((line) => line.split(' '))
  const cancelled = (word: string): string[] => cancellations.flatMap(([is, id = '']) => (is === word ? [id] : []))
  const ended = new Set([...tellings.keys(), ...cancelled('done')])
  const past = linesOf('history')
  const times = (id: string): number => past.filter((each) => each === id).length
  const asked = new Set(cancelled('asked'))
  const recoveries = linesOf('recoveries').map((line) => line.split(' ').map(Number))
  const sum = (column: number): number => recoveries.reduce((total, row) => total + (row[column] ?? 0), 0)
  const repeats = [...tellings].filter(([, told]) => told.length > 1)
  return {
    figures: {
      launches: launched.length,
      ends: tellings.size + cancelled('done').length,
      deliveries: messages.length,
      cancelled: cancelled('done').length,
      adopted: sum(0),
      retried: sum(1),
      interrupted: sum(2),
      possibleRepeats: [...tellings.values()].flat().filter(({ isMarked }) => isMarked).length,
      toldTwice: repeats.length,
      cleanEnds: transcript.filter((line) => line === END).length,
    },
    faults: {
      lost: launched.filter((id) => !tellings.has(id) && !asked.has(id)),
      unmarked: repeats
        .filter(([, told]) => !isBlind || told.slice(1).some(({ isMarked }) => !isMarked))
        .map(([id]) => id),
      unconfirmed: toldAgain(transcript, new Set(linesOf('accepted'))),
      toldCancelled: cancelled('done').filter((id) => tellings.has(id)),
      miscounted: miscounted(linesOf('runs'), new Set(linesOf('stopped'))),
      notInHistory: [...ended].filter((id) => times(id) !== 1),
    },
  }
}

/**
 * Finds attempts that ran again although no clean end had stopped them, or that were too many. A host that is killed uses up the attempts of its runs, and
 * a host that ends cleanly does not (promise K13).
 * @param stopped the seeds of the hosts that ended cleanly
 */
function miscounted(runs: readonly string[], stopped: ReadonlySet<string>): string[] {
  const used = new Set<string>()
  return runs.filter((line) => {
    const [id = '', attempt = '', host = ''] = line.split(' ')
    const run = `${id} ${attempt}`
    const isFault = used.has(run) || used.has(line) || Number(attempt) > MAX_ATTEMPTS
    used.add(stopped.has(host) ? line : run)
    return isFault
  })
}

/** Finds tasks whose result was delivered again although the earlier delivery was certain. */
function toldAgain(transcript: readonly string[], accepted: ReadonlySet<string>): string[] {
  // Deliveries of the present host. Those of an earlier host that was killed are uncertain until a repeat of them is accepted.
  const told = new Set<string>()
  const confirmed = new Set<string>()
  const faults: string[] = []
  for (const line of transcript) {
    if (line === BEGIN) {
      told.clear()
      continue
    }
    if (line === END) {
      for (const id of told) confirmed.add(id)
      continue
    }
    const [deliveryId = '', ...tasks] = line.split(' ')
    for (const [id = '', , mark] of tasks.map((task) => task.split('='))) {
      if (confirmed.has(id)) faults.push(id)
      told.add(id)
      if (mark === 'repeat' && accepted.has(deliveryId)) confirmed.add(id)
    }
  }
  return faults
}
