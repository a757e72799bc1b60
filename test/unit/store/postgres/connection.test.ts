import { expect, it, vi } from 'vitest'
import { Connection, type PostgresClient } from '../../../../src/store/postgres/connection.js'
import { NotSentError } from '../../../../src/store/postgres/postgres-failure.js'

/** A client that answers as the test says. */
class ScriptedClient implements PostgresClient {
  readonly sent: string[] = []
  ended = 0
  #onEnd: (() => void) | undefined
  readonly #answers: unknown[]

  /** @param answers for each statement, the error that it fails with; undefined when it succeeds */
  constructor(answers: unknown[] = []) {
    this.#answers = answers
  }

  query(text: string): Promise<{ rows: unknown[] }> {
    this.sent.push(text)
    const error = this.#answers.shift()
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the errors are those of a client
    return error === undefined ? Promise.resolve({ rows: [{ text }] }) : Promise.reject(error)
  }

  end(): Promise<void> {
    this.ended += 1
    this.break()
    return Promise.resolve()
  }

  on(_event: 'end', listener: () => void): void {
    this.#onEnd = listener
  }

  break(): void {
    this.#onEnd?.()
  }
}

const failure = (code: string): Error => Object.assign(new Error(code), { code })

/** A connection that uses these clients, one after another. */
function connectionTo(...clients: readonly ScriptedClient[]) {
  const left = [...clients]
  return new Connection(() => {
    const next = left.shift()
    return next === undefined ? Promise.reject(failure('ECONNREFUSED')) : Promise.resolve(next)
  })
}

it('ends a broken client exactly once, and opens another one', async () => {
  const broken = new ScriptedClient([failure('ECONNRESET')])
  const next = new ScriptedClient()
  const connection = connectionTo(broken, next)
  const first = connection.query('a')
  const second = connection.query('b')
  await expect(first).rejects.toMatchObject({ code: 'ECONNRESET' })
  expect(await second).toEqual([{ text: 'b' }])
  // The client that has ended is another one by now.
  broken.break()
  await connection.query('c')
  await connection.close()
  await connection.close()
  expect([broken, next].map(({ sent, ended }) => [sent, ended])).toEqual([
    [['a'], 1],
    [['b', 'c'], 1],
  ])
})

it('does not end a client that has ended by itself, or whose server has answered', async () => {
  const gone = new ScriptedClient()
  const next = new ScriptedClient([failure('23505')])
  const connection = connectionTo(gone, next)
  await connection.query('a')
  gone.break()
  await expect(connection.query('b')).rejects.toMatchObject({ code: '23505' })
  await connection.query('c')
  expect([gone.ended, next.ended, next.sent]).toEqual([0, 0, ['b', 'c']])
})

it('says that a statement was not sent: without a client, and when it is too large', async () => {
  const client = new ScriptedClient([new RangeError('Invalid string length')])
  const connection = connectionTo(client)
  await expect(connection.query('a')).rejects.toBeInstanceOf(NotSentError)
  // `pg` waits for ever for the end of a statement of which it has sent only the beginning.
  expect(client.ended).toBe(1)
  await expect(connection.query('b')).rejects.toMatchObject({ name: 'NotSentError', cause: { code: 'ECONNREFUSED' } })
})

it('repeats a statement that another transaction prevents, but not for ever', async () => {
  const client = new ScriptedClient(Array.from({ length: 3 }, () => failure('40001')))
  expect(await connectionTo(client).query('a')).toEqual([{ text: 'a' }])
  expect(client.sent).toHaveLength(4)
  const other = new ScriptedClient(Array.from({ length: 100 }, () => failure('40P01')))
  await expect(connectionTo(other).query('a')).rejects.toMatchObject({ code: '40P01' })
  expect(other.sent).toHaveLength(20)
})

it('repeats a whole transaction, and runs no other statement in it', async () => {
  const client = new ScriptedClient([undefined, undefined, failure('40001')])
  const connection = connectionTo(client)
  const both = connection.transaction(async (query) => {
    await query('a')
    return query('b')
  })
  await connection.query('c')
  expect(await both).toEqual([{ text: 'b' }])
  const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED'
  expect(client.sent).toEqual([begin, 'a', 'b', 'ROLLBACK', begin, 'a', 'b', 'COMMIT', 'c'])
})

it('does not continue a transaction on another client', async () => {
  const broken = new ScriptedClient([undefined, failure('ECONNRESET')])
  const next = new ScriptedClient()
  const connection = connectionTo(broken, next)
  const ends = connection.transaction(async (query) => {
    await query('a').catch(() => undefined)
    await query('b')
  })
  await ends
  expect(next.sent).toEqual([])
})

it('says why the server refused a transaction, also when the connection breaks before the end of it', async () => {
  const client = new ScriptedClient([undefined, failure('23505'), failure('ECONNRESET')])
  const next = new ScriptedClient()
  const connection = connectionTo(client, next)
  await expect(connection.transaction((query) => query('a'))).rejects.toMatchObject({ code: '23505' })
  expect([client.sent.at(-1), client.ended]).toEqual(['ROLLBACK', 1])
  await connection.query('b')
  expect(next.sent).toEqual(['b'])
})

it('goes on with another client, and closes, when the end of a broken one fails', async () => {
  const end = vi.fn(() => Promise.reject(failure('EPIPE')))
  const broken = Object.assign(new ScriptedClient([failure('ECONNRESET')]), { end })
  const last = Object.assign(new ScriptedClient(), { end })
  const connection = connectionTo(broken, last)
  await expect(connection.query('a')).rejects.toMatchObject({ code: 'ECONNRESET' })
  await connection.query('b')
  expect([last.sent, end.mock.calls.length]).toEqual([['b'], 1])
  await connection.close()
  expect(end).toHaveBeenCalledTimes(2)
})
