/** What every error of the package has: a class and a code that stay, and a message that says what to do. */
import { describe, expect, it } from 'vitest'
import * as errors from '../../src/errors.js'

const thrown: readonly [errors.AgentTasksError, name: string, code: string, words: string][] = [
  [new errors.TaskIdInUseError('a'), 'TaskIdInUseError', 'TASK_ID_IN_USE', 'Choose another id.'],
  [new errors.TaskLimitError(3), 'TaskLimitError', 'TASK_LIMIT', 'Max async tasks (3) reached'],
  [new errors.ReservationError('r'), 'ReservationError', 'RESERVATION_UNKNOWN', 'tryReserveAsyncSlot()'],
  [
    new errors.InvalidSettingError('x', 7, 'a text'),
    'InvalidSettingError',
    'INVALID_SETTING',
    'got 7, expected a text',
  ],
  [new errors.InvalidInputError('input.id', '', 'an id'), 'InvalidInputError', 'INVALID_INPUT', 'input.id: got ""'],
  [new errors.DisposedError(), 'DisposedError', 'DISPOSED', 'it takes no new tasks'],
  [new errors.InstanceError('INSTANCE_UNKNOWN', 'i', 'No i.'), 'InstanceError', 'INSTANCE_UNKNOWN', 'No i.'],
  [new errors.ToolCallError(-32_602, 'No such tool.'), 'ToolCallError', '-32602', 'No such tool.'],
  [new errors.ProtocolError('It said hello twice.'), 'ProtocolError', 'PROTOCOL_ERROR', 'hello twice'],
]

describe('an error', () => {
  it.each(thrown)('can be caught by its class and told by its code: %s', (error, name, code, words) => {
    expect(error).toBeInstanceOf(errors.AgentTasksError)
    expect(error).toMatchObject({ name, code })
    expect(error.message).toContain(words)
  })

  it('keeps what caused it', () => {
    const cause = new Error('the first')
    expect(new errors.ProtocolError('the second', { cause }).cause).toBe(cause)
  })
})
