/** The promises that a race delays. Each settles in a turn of its own, when a chooser chooses it. */
import type { RaceNames } from './race-names.js'
import type { Race } from './race-options.js'

/** Something that can take the next turn. */
export interface Turn {
  /** The name of an actor, the label of a promise, or `clock`. */
  readonly actor: string
  readonly step: string
  readonly take: () => void
}

export class RacePromises implements Pick<Race, 'schedule' | 'scheduleFunction' | 'pause'> {
  readonly #names: RaceNames
  readonly #unsettled = new Set<string>()
  #ready: Turn[] = []
  #isClosed = false

  constructor(names: RaceNames) {
    this.#names = names
  }

  /** The promises that can settle now, in the order in which they became ready. */
  get ready(): readonly Turn[] {
    return this.#ready
  }

  /** The names of the promises whose tasks have not settled. */
  get unsettled(): readonly string[] {
    return [...this.#unsettled]
  }

  schedule<T>(task: PromiseLike<T>, label = 'promise'): Promise<T> {
    const name = this.#names.next(label)
    this.#unsettled.add(name)
    return new Promise((resolve, reject) => {
      const offer = (step: string, settle: () => void): void => {
        this.#unsettled.delete(name)
        this.#offer(name, step, settle)
      }
      task.then(
        (value) => offer('resolves', () => resolve(value)),
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the reason is passed on unchanged
        (error: unknown) => offer('rejects', () => reject(error)),
      )
    })
  }

  scheduleFunction<Args extends unknown[], T>(
    act: (...args: Args) => PromiseLike<T>,
    label?: string,
  ): (...args: Args) => Promise<T> {
    const name = label ?? (act.name === '' ? 'call' : act.name)
    return (...args) => this.schedule(act(...args), name)
  }

  pause(label: string): Promise<void> {
    const name = this.#names.next(label)
    return new Promise((resolve) => this.#offer(name, 'goes on', resolve))
  }

  /** Promises that become ready after this call never settle. */
  close(): void {
    this.#isClosed = true
  }

  #offer(actor: string, step: string, settle: () => void): void {
    if (this.#isClosed) return
    const turn: Turn = {
      actor,
      step,
      take: () => {
        this.#ready = this.#ready.filter((other) => other !== turn)
        settle()
      },
    }
    this.#ready.push(turn)
  }
}
