/** Validates the manager that a host's function returns. Untyped hosts may return any value. */
import { InvalidInputError } from '../errors.js'
import { AsyncTaskManager } from './manager.js'

/**
 * Returns the result of `getAsyncTaskManager`.
 * @throws InvalidInputError unless it is a manager
 */
export function givenManager(options: { readonly getAsyncTaskManager: () => AsyncTaskManager }): AsyncTaskManager {
  const manager: unknown = options.getAsyncTaskManager()
  if (manager instanceof AsyncTaskManager) return manager
  throw new InvalidInputError('options.getAsyncTaskManager()', manager, 'an AsyncTaskManager')
}
