// A task that runs on a node of a cluster: what it writes, and in which order.
import { describe, expect, it } from 'vitest'
import { TaskRun } from '../../../../src/bullmq/cluster/task-run.js'
import type { TaskWrite } from '../../../../src/bullmq/cluster/cluster-redis.js'
import type { Task, TaskCompleteMessage, TaskProgressMessage } from '../../../../src/protocol/command-tasks.js'

const task = (status: Task['status'], outcome: object = {}): Task =>
  ({
    id: 't',
    instanceId: 'w',
    name: 't',
    intention: '',
    createdAt: 1,
    startedAt: 2,
    status,
    currentCommandIndex: 0,
    commands: [{ id: 'cmd_1', tool_name: 'do', intention: '', args: {}, status: 'pending', ...outcome }],
    ...(status === 'completed' && { completedAt: 5, duration: 3 }),
  }) as Task
const progress = (more: Partial<TaskProgressMessage> = {}): TaskProgressMessage => ({
  type: 'task_progress',
  taskId: 't',
  instanceId: 'w',
  commandId: 'cmd_1',
  commandIndex: 0,
  totalCommands: 1,
  status: 'running',
  timestamp: 2,
  tool_name: 'do',
  intention: '',
  ...more,
})
const complete = {
  type: 'task_complete',
  taskId: 't',
  instanceId: 'w',
  timestamp: 5,
  status: 'completed',
  results: [],
  summary: { totalCommands: 1, successfulCommands: 1, duration: 3 },
} as TaskCompleteMessage

function open(seq = 0) {
  const writes: TaskWrite[] = []
  const answers: ((answer: 'ok' | 'over' | 'stale' | Error) => void)[] = []
  let lost = 0
  const run = new TaskRun(
    {
      taskId: 't',
      queue: 'queue',
      token: 'n:1',
      write: (write) => {
        writes.push(write)
        return new Promise((resolve, reject) =>
          answers.push((answer) => (answer instanceof Error ? reject(answer) : resolve(answer))),
        )
      },
      onLost: () => (lost += 1),
    },
    seq,
  )
  const turn = async (): Promise<void> => {
    for (let count = 0; count < 5; count += 1) await Promise.resolve()
  }
  return {
    run,
    writes,
    turn,
    answer: async (how: 'ok' | 'over' | 'stale' | Error) => (answers.shift()?.(how), turn()),
    lost: () => lost,
  }
}

const placesOf = ({ events }: TaskWrite): number[] => events.map(({ seq }) => seq)

describe('a run', () => {
  it('N3: writes one batch at a time, in order, and ends with its end', async () => {
    const { run, writes, turn, answer } = open(3)
    run.progress(progress(), task('running', { status: 'running', startedAt: 2 }))
    run.progress(progress({ progress: 1 }), undefined)
    await turn()
    expect(writes.map(placesOf)).toEqual([[4, 5]])
    expect(writes[0]?.fields).toMatchObject({
      status: 'running',
      startedAt: '2',
      c0: '{"status":"running","startedAt":2}',
    })
    const result = { content: [] }
    run.progress(progress({ status: 'success', result }), task('running', { status: 'success', result }))
    run.complete(complete, task('completed', { status: 'success', result }))
    expect(writes).toHaveLength(1)
    await answer('ok')
    expect(placesOf(writes[1] as TaskWrite)).toEqual([6, 7])
    expect(writes[1]).toMatchObject({
      isEnd: true,
      bytes: 14,
      fields: { status: 'completed', completedAt: '5', duration: '3' },
    })
    await answer('ok')
    expect(await run.settled).toBe('ended')
    run.lose()
    expect(await run.settled).toBe('ended')
  })

  it.each(['stale', 'over', new Error('closed')] as const)(
    'N1: that is not this connection’s any more (%s) writes nothing more',
    async (how) => {
      const { run, writes, turn, answer, lost } = open()
      run.progress(progress(), task('running'))
      await turn()
      run.progress(progress({ progress: 1 }), undefined)
      await answer(how)
      run.progress(progress({ progress: 2 }), undefined)
      run.complete(complete, task('completed'))
      run.lose()
      await turn()
      expect([writes.length, lost(), await run.settled]).toEqual([1, 1, 'lost'])
    },
  )

  it('writes what is new, and nothing of it again', async () => {
    const { run, writes, turn, answer } = open()
    const result = { content: [{ type: 'text', text: 'done' }] }
    run.progress(progress({ status: 'success', result }), task('running', { status: 'success', result }))
    await turn()
    await answer('ok')
    run.progress(progress({ progress: 1 }), undefined)
    await turn()
    expect(writes[0]).toMatchObject({ bytes: Buffer.byteLength(JSON.stringify(result)), isEnd: false })
    expect(writes[1]).toMatchObject({ fields: {}, bytes: 0, dropped: [], isEnd: false })
    expect(writes.map(placesOf)).toEqual([[1], [2]])
    await answer('ok')
  })

  it('loses reports while Redis is slow, and never a start or an end', async () => {
    const { run, writes, turn, answer } = open()
    run.progress(progress(), task('running'))
    await turn()
    for (let count = 0; count < 500; count += 1) run.progress(progress({ progress: count }), undefined)
    run.progress(progress({ status: 'success' }), task('running'))
    await answer('ok')
    expect(writes[1]?.events).toHaveLength(101)
    await answer('ok')
  })

  it('keeps the last 1,000 reports, and texts of 1 MiB', async () => {
    const { run, writes, turn, answer } = open()
    for (let count = 0; count < 1002; count += 1) {
      run.progress(progress({ progress: count }), undefined)
      await turn()
      await answer('ok')
    }
    expect(writes.flatMap(({ dropped }) => dropped)).toEqual([1, 2])
    run.progress(progress({ progress: 1, message: 'x'.repeat(2 ** 20) }), undefined)
    run.progress(progress({ progress: 1, message: 'x' }), undefined)
    await turn()
    expect(writes.at(-1)?.dropped).toHaveLength(1001)
    await answer('ok')
  })
})
