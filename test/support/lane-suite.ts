/** Tests of what clients see of instances. They must pass with one server, and with several servers behind one address. */
import { describe, expect, it } from 'vitest'
import { until } from './cluster-client.js'
import { connectWatched } from './cluster-instance.js'
import { command, openServed, type OpenServers } from './served-tasks.js'

export function laneSuite(kind: string, open: OpenServers): void {
  describe(`${kind}: lanes`, () => {
    it('S3: run one command at a time, tasks in the order of their submission, and do not wait for other lanes', async () => {
      const { url, submit, ended } = await openServed(open)
      const [worker, other] = [await connectWatched(url, 'w'), await connectWatched(url, 'v')]
      const held = await submit('w', command('hold', { mark: 'held' }))
      await worker.untilStarted('held')
      const marks = Array.from({ length: 12 }, (_, n) => `m${n}`)
      const ids: string[] = []
      for (const mark of marks) ids.push(await submit('w', command('do', { mark, ms: 1 }), command('do', { mark })))
      await ended(await submit('v', command('do', { mark: 'beside' })))
      expect(other.started()).toEqual(['beside'])
      expect(worker.started()).toEqual(['held'])
      worker.finish('held')
      for (const id of [held, ...ids]) expect(await ended(id)).toMatchObject({ status: 'completed' })
      expect(worker.started()).toEqual(['held', ...marks.flatMap((mark) => [mark, mark])])
      expect(worker.mostAtOnce).toBe(1)
    })

    it('S2: end a task at the first command that fails, with the results before it', async () => {
      const { url, submit, task, ended } = await openServed(open)
      const worker = await connectWatched(url, 'w')
      const id = await submit(
        'w',
        command('do', { mark: 'one' }),
        command('do', { mark: 'two', error: 'no such button' }),
        command('do', { mark: 'three' }),
      )
      await ended(id)
      expect(await task(id)).toMatchObject({
        status: 'failed',
        currentCommandIndex: 1,
        error: { code: 'BROKEN', message: 'no such button' },
        commands: [
          { status: 'success', result: { content: [{ type: 'text', text: 'one' }] } },
          { status: 'error', error: { code: 'BROKEN', message: 'no such button' } },
          { status: 'skipped' },
        ],
      })
      const unknown = await submit('w', { tool_name: 'nonesuch', intention: '', args: {} })
      expect(await ended(unknown)).toMatchObject({ status: 'failed' })
      expect(worker.started()).toEqual(['one', 'two'])
    })

    it('S5: abort a command that exceeds its time limit, and go on', async () => {
      const { url, submit, task, ended } = await openServed(open)
      const worker = await connectWatched(url, 'w')
      const id = await submit('w', command('hold', { mark: 'slow' }, { timeout: 50 }), command('do', { mark: 'never' }))
      const next = await submit('w', command('do', { mark: 'next' }))
      await ended(next)
      expect(await task(id)).toMatchObject({
        status: 'failed',
        error: { code: 'COMMAND_TIMEOUT' },
        commands: [{ status: 'error' }, { status: 'skipped' }],
      })
      expect(worker.deeds.map(({ mark, step }) => `${mark} ${step}`).slice(0, 2)).toEqual(['slow start', 'slow end'])
      expect(worker.started()).toEqual(['slow', 'next'])
    })

    it('S1, S4: a cancelled task ends at once: one that waits never starts, and the call of one that runs is aborted', async () => {
      const { url, submit, task, post, ended } = await openServed(open)
      const worker = await connectWatched(url, 'w')
      const running = await submit('w', command('hold', { mark: 'running' }), command('do', { mark: 'never' }))
      await worker.untilStarted('running')
      const queued = await submit('w', command('do', { mark: 'queued' }))
      const next = await submit('w', command('do', { mark: 'next' }))
      const error = { code: 'CANCELLED', message: 'Task cancelled' }
      expect(await post(`/tasks/${queued}/cancel`)).toMatchObject({ status: 200, body: { success: true } })
      expect(await task(queued)).toMatchObject({ status: 'cancelled', duration: 0, error })
      expect(await task(queued)).not.toHaveProperty('startedAt')
      expect(await post(`/tasks/${running}/cancel`)).toMatchObject({ status: 200 })
      expect(await task(running)).toMatchObject({
        status: 'cancelled',
        error,
        commands: [{ status: 'skipped' }, { status: 'skipped' }],
      })
      for (const id of [queued, running]) {
        expect(await post(`/tasks/${id}/cancel`)).toMatchObject({ status: 409, body: { code: 'TASK_ENDED' } })
      }
      expect(await post('/tasks/task_1_1/cancel')).toMatchObject({ status: 404, body: { code: 'TASK_NOT_FOUND' } })
      expect(await ended(next)).toMatchObject({ status: 'completed' })
      expect(await post(`/tasks/${next}/cancel`)).toMatchObject({
        status: 409,
        body: { code: 'TASK_ENDED', error: 'Task already completed' },
      })
      expect(worker.started()).toEqual(['running', 'next'])
      expect(worker.deeds[1]).toMatchObject({ mark: 'running', step: 'end' })
    })

    it('S8: have room for so many tasks that have not ended, each of its own', async () => {
      const { url, submit, post, submission } = await openServed(open, { tasks: { maxQueueSize: 3 } })
      const worker = await connectWatched(url, 'w')
      await connectWatched(url, 'v')
      await submit('w', command('hold', { mark: 'held' }))
      await worker.untilStarted('held')
      const more = submission('w', [command('do', { mark: 'more' })])
      const answers = [await post('/tasks', more), await post('/tasks', more), await post('/tasks', more)]
      expect(answers.map(({ status, body }) => [status, body['queuePosition'] ?? body['error']])).toEqual([
        ...[
          [201, 2],
          [201, 3],
        ],
        [429, 'Task queue is full (max 3, maxQueueSize)'],
      ])
      await submit('v', command('do', { mark: 'other' }))
      await post(`/tasks/${String(answers[1]?.body['taskId'])}/cancel`)
      expect(await post('/tasks', more)).toMatchObject({ status: 201, body: { queuePosition: 3 } })
      worker.finish('held')
    })

    it('answer a repeated submission with the task that there is', async () => {
      const { url, post, submission, ended } = await openServed(open)
      const worker = await connectWatched(url, 'w')
      const key = { 'idempotency-key': 'k' }
      const once = submission('w', [command('do', { mark: 'once' })])
      const answers = [
        await post('/tasks', once, key),
        await post('/tasks', once, key),
        await post('/tasks', once, key),
      ]
      expect(new Set(answers.map(({ body }) => JSON.stringify([body['taskId'], body['queuePosition']]))).size).toBe(1)
      for (const other of [submission('w', [command('do', { mark: 'other' })]), { ...once, instanceId: undefined }]) {
        expect(await post('/tasks', other, key)).toMatchObject({
          status: 422,
          body: { code: 'IDEMPOTENCY_KEY_REUSED' },
        })
      }
      await ended(String(answers[0]?.body['taskId']))
      expect(await post('/tasks', once, key)).toMatchObject({ body: { taskId: answers[0]?.body['taskId'] } })
      expect(worker.started()).toEqual(['once'])
    })

    it('S1: fail what ran on an instance that was lost, and serve it again when it is back', async () => {
      const { url, submit, task, post, submission, cut, ended } = await openServed(open)
      const worker = await connectWatched(url, 'w')
      const id = await submit('w', command('do', { mark: 'done' }), command('hold', { mark: 'lost' }))
      await worker.untilStarted('lost')
      cut()
      await ended(id)
      expect(await task(id)).toMatchObject({
        status: 'failed',
        error: { code: 'INSTANCE_DISCONNECTED' },
        commands: [{ status: 'success' }, { status: 'skipped' }],
      })
      const after = submission('w', [command('do', { mark: 'after' })])
      const { body } = await until(async () => {
        const answer = await post('/tasks', after)
        return answer.status === 201 && answer
      })
      expect(await ended(String(body['taskId']))).toMatchObject({ status: 'completed' })
      expect(worker.started()).toEqual(['done', 'lost', 'after'])
      expect(worker.mostAtOnce).toBe(1)
    })

    it('refuse what is no task, and say which field', async () => {
      const { url, post, submission, ended } = await openServed(open)
      const some = submission('w', [command('do', { mark: 'x' })])
      const { instanceId: _, ...anywhere } = some
      expect(await post('/tasks', anywhere)).toMatchObject({ status: 503, body: { code: 'NO_INSTANCE' } })
      await connectWatched(url, 'w')
      const refused = async (task: unknown) => {
        const { status, body } = await post('/tasks', task)
        return [status, body['code'], body['error']]
      }
      expect(await refused({ ...some, commands: [] })).toEqual([
        ...[400, 'NO_COMMANDS', 'Task must have at least one command'],
      ])
      expect(await refused({ ...some, task_name: 7 })).toEqual([
        ...[400, 'INVALID_TASK', expect.stringContaining('task_name: got 7') as string],
      ])
      expect(await refused({ ...some, commands: [{ tool_name: 'do', args: [] }] })).toEqual([
        ...[400, 'INVALID_TASK', expect.stringContaining('commands[0].args') as string],
      ])
      expect(await refused({ ...some, instanceId: 'nobody' })).toEqual([
        ...[
          404,
          'INVALID_INSTANCE',
          expect.stringMatching(/^Instance not found: nobody\. Known instances: /) as string,
        ],
      ])
      expect(await refused({ ...some, instance: 'w' })).toEqual([
        ...[400, 'INVALID_TASK', expect.stringContaining('the nearest is instanceId') as string],
      ])
      const { body } = await post('/tasks', { ...anywhere, metadata: { kept: [1] } })
      expect(await ended(String(body['taskId']))).toMatchObject({
        status: 'completed',
        metadata: { kept: [1] },
      })
    })
  })
}
