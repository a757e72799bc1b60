/** What a feature adds to the page. `page-features.ts` lists the features. */
import type { z } from 'zod'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import { parseInput } from '../protocol/parse.js'
import { conflict, done, type Answer } from './answers.js'
import type { PageEntry } from './page-entry.js'
import type { HostRow } from './wire.js'

/** The maximum number of rows of a feature whose rows a program creates. */
export const MAX_ROWS = 1000

export interface PageFeature {
  /** Returns the rows of the part `Host`. */
  readonly rows?: (manager: AsyncTaskManager) => HostRow[]
  /** The actions on rows, by the first and the last segment of their path. */
  readonly rowActions?: Readonly<Record<string, (page: PageParts, id: string, body: unknown) => Promise<Answer>>>
  /** The actions on a task, by the last segment of their path. */
  readonly taskActions?: Readonly<
    Record<string, (page: PageParts, entry: PageEntry, body: unknown) => Answer | Promise<Answer>>
  >
  /** What can be read with parameters, by its path. Throws `INVALID_INPUT` for a wrong parameter. */
  readonly queries?: Readonly<Record<string, (page: PageParts, parameters: URLSearchParams) => Promise<object>>>
}

export interface PageParts {
  readonly manager: AsyncTaskManager | undefined
  readonly taskManager: TaskManager | undefined
  readonly state: {
    noteAnswer(entry: PageEntry, questionId: string): void
    noteMessage(entry: PageEntry, message: string): void
    /** Sends the rows again if one of them has changed. */
    rollHost(): unknown
  }
}

/**
 * Creates an action on a row.
 * @param act performs the action; returns false if the id is unknown
 */
export const onRow =
  <Body>(schema: () => z.ZodType<Body>, act: (manager: AsyncTaskManager, id: string, body: Body) => unknown) =>
  async ({ manager, state }: PageParts, id: string, given: unknown): Promise<Answer> => {
    const body = parseInput(schema(), given, 'body')
    if (manager === undefined || act(manager, id, body) === false) {
      return conflict('ENDED', 'There is no schedule, monitor or pause with this id, or it has ended.')
    }
    state.rollHost()
    await manager.stored()
    return done()
  }
