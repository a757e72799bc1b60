/** What every error of the package has: a code that stays, and a message that says what to do. */
import { describe, expect, it } from 'vitest'
import * as errors from '../../src/errors.js'

const thrown: readonly [errors.AgentTasksError, code: string, words: string][] = [
  [new errors.TaskIdInUseError('a'), 'TASK_ID_IN_USE', 'Choose another id.'],
  [new errors.TaskLimitError(3), 'TASK_LIMIT', 'Max async tasks (3) reached'],
  [new errors.ReservationError('r'), 'RESERVATION_UNKNOWN', 'tryReserveAsyncSlot()'],
  [new errors.InvalidSettingError('x', 7, 'a text'), 'INVALID_SETTING', 'got 7, expected a text'],
  [new errors.InvalidInputError('input.id', '', 'an id'), 'INVALID_INPUT', 'input.id: got ""'],
  [new errors.DisposedError(), 'DISPOSED', 'it takes no new tasks'],
  [new errors.InstanceError('INSTANCE_UNKNOWN', 'i', 'No i.'), 'INSTANCE_UNKNOWN', 'No i.'],
  [new errors.ToolCallError(-32_602, 'No such tool.'), '-32602', 'No such tool.'],
  [new errors.ProtocolError('It said hello twice.'), 'PROTOCOL_ERROR', 'hello twice'],
]

describe('an error', () => {
  it.each(thrown)('is of one class, and told by its code: %s', (error, code, words) => {
    expect(error).toBeInstanceOf(errors.AgentTasksError)
    expect(error).toMatchObject({ name: 'AgentTasksError', code })
    expect(error.message).toContain(words)
  })

  it('keeps what caused it', () => {
    const cause = new Error('the first')
    expect(new errors.ProtocolError('the second', { cause }).cause).toBe(cause)
  })
})
