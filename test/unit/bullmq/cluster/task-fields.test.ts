// Command tasks as fields of a hash, and back.
import { describe, expect, it } from 'vitest'
import { clusterKeys } from '../../../../src/bullmq/cluster/cluster-keys.js'
import {
  commandField,
  endFields,
  endTask,
  statusFields,
  submissionField,
  SUMMARY_FIELDS,
  summaryField,
  toSummary,
  toTask,
  type ClusterTask,
} from '../../../../src/bullmq/cluster/task-fields.js'

const submission = {
  name: 'two',
  intention: 'to be run',
  metadata: { by: 'me' },
  commands: ['cmd_1', 'cmd_2'].map((id) => ({
    id,
    tool_name: 'do',
    intention: '',
    args: { a: 1 },
    status: 'pending' as const,
  })),
}
const queued = {
  record: submissionField(submission),
  summary: summaryField(submission),
  instanceId: 'w',
  status: 'queued',
  createdAt: '1',
  index: '0',
  place: '3',
  seq: '2',
}

function found(fields: Record<string, string>): ClusterTask {
  const task = toTask('t', fields)
  if (task === undefined) throw new Error('There is no task.')
  return task
}

describe('a task in Redis', () => {
  it('is read as it was submitted', () => {
    expect(toTask('t', {})).toBeUndefined()
    expect(found(queued)).toMatchObject({
      task: {
        id: 't',
        status: 'queued',
        instanceId: 'w',
        createdAt: 1,
        commands: submission.commands,
        metadata: { by: 'me' },
      },
      place: 3,
      seq: 2,
      cancel: undefined,
    })
    expect(
      toSummary(
        't',
        SUMMARY_FIELDS.map((name) => (queued as Record<string, string>)[name] ?? null),
      ),
    ).toEqual({
      id: 't',
      name: 'two',
      intention: 'to be run',
      status: 'queued',
      instanceId: 'w',
      totalCommands: 2,
      currentCommandIndex: 0,
      createdAt: 1,
    })
    expect(toSummary('t', [null])).toBeUndefined()
  })

  it('does not end before it has started, whose clock was ahead of this one', () => {
    const running = { ...queued, status: 'running', startedAt: '60004' }
    const { task } = endTask(found(running), (ended) => ended.lose('it is gone'), 9)
    expect(task).toMatchObject({ status: 'failed', startedAt: 60_004, completedAt: 60_004, duration: 0 })
  })

  it('N4: that ran on a node that is gone fails, with the results before it', () => {
    const first = { status: 'success', startedAt: 4, completedAt: 5, result: { content: [] } }
    const running = {
      ...queued,
      status: 'running',
      startedAt: '4',
      index: '1',
      c0: JSON.stringify(first),
      c1: '{"status":"running","startedAt":5}',
    }
    const { task, message } = endTask(found(running), (ended) => ended.lose('it is gone'), 9)
    const error = { code: 'INSTANCE_DISCONNECTED', message: 'it is gone' }
    expect(message).toMatchObject({ status: 'failed', error, results: [{ status: 'success' }, { status: 'skipped' }] })
    const after = found({ ...running, ...endFields(task) })
    expect(after.task).toEqual(task)
    expect(after.task).toMatchObject({
      status: 'failed',
      completedAt: 9,
      error,
      commands: [first, { status: 'skipped', error }],
    })
    const listed = toSummary(
      't',
      SUMMARY_FIELDS.map((name) => (({ ...running, ...endFields(task) }) as Record<string, string>)[name] ?? null),
    )
    expect(listed).toMatchObject({ status: 'failed', startedAt: 4, completedAt: 9, finishedCommands: 1 })
  })

  it('that never started is cancelled without a duration, and its commands are skipped', () => {
    const { task } = endTask(found(queued), (ended) => ended.cancel(undefined), 9)
    expect(found({ ...queued, ...endFields(task) }).task).toEqual(task)
    expect(task).toMatchObject({
      status: 'cancelled',
      duration: 0,
      commands: [{ status: 'skipped' }, { status: 'skipped' }],
    })
    expect(() => endTask(found(queued), () => undefined, 9)).toThrow('did not end')
  })

  it('changes by the fields of one command', () => {
    const { task } = found({ ...queued, ...commandField({ ...found(queued).task, commands: [] }, 0) })
    expect(commandField(task, 1)).toEqual({ c1: '{"status":"pending"}' })
    expect(statusFields(task)).toEqual({ status: 'queued', index: '0', finished: '0' })
  })
})

describe('the names of what is kept', () => {
  it('have one hash tag, and no colon in the name of a queue', () => {
    const keys = clusterKeys('c')
    expect(keys.queue('a:b/ü')).toBe('i-a%3Ab%2F%C3%BC')
    const all = [keys.feed, keys.task('t'), keys.log('t'), keys.queueKey('a:b')]
    expect(all).toEqual(['{c}:cluster:feed', '{c}:cluster:task:t', '{c}:cluster:log:t', '{c}:i-a%3Ab'])
  })
})
