/** The manager that a host's function returns: hosts without types may return anything. */
import { InvalidInputError } from '../errors.js'
import { AsyncTaskManager } from './manager.js'

/** What the option `getAsyncTaskManager` returns. @throws InvalidInputError unless it is a manager */
export function givenManager(options: { readonly getAsyncTaskManager: () => AsyncTaskManager }): AsyncTaskManager {
  const manager: unknown = options.getAsyncTaskManager()
  if (manager instanceof AsyncTaskManager) return manager
  throw new InvalidInputError('options.getAsyncTaskManager()', manager, 'an AsyncTaskManager')
}
