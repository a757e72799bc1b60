/** Whose `AsyncLocalStorage` code of the host sees when it runs later than the call that requested it. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Observable, tap } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { currentTurn, type TurnMarker } from '../../../src/isolation/current-turn.js'
import type { Engine } from '../../../src/engine/engine.js'
import { createInProcessEngine } from '../../../src/engine/in-process.js'
import { createAgentTasks, type AgentTasksOptions, type RunContext, type Subagent } from '../../../src/index.js'
import { InstanceManager, localInstance, TaskManager, type InstanceTool } from '../../../src/server/index.js'
import { memoryStore, type Store } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { deferred } from '../tools/tool-host.js'
import { settle } from './launched-tasks.js'
import { createTurns } from '../../../src/parts.js'

const user = new AsyncLocalStorage<string>()
const stores = [
  ['without a store', () => ({})],
  ['with a store', () => ({ store: memoryStore() })],
] as const

/** A host that was created in the context `host`. */
function setUp(options: AgentTasksOptions = {}) {
  const tasks = user.run('host', () => createAgentTasks({ maxAsyncTasks: 1, whenFull: 'queue', ...options }))
  onTestFinished(() => tasks.dispose())
  return tasks
}

/** A subagent that notes its user at each step, and ends when the gate opens. */
function recorded() {
  const seen: unknown[] = []
  const gate = deferred<string>()
  const note = (): void => void seen.push(user.getStore())
  const work = (): string => {
    note()
    return 'done'
  }
  return { seen, gate, note, work }
}

describe('a run', () => {
  it.each(stores)('H5: executes in the context of its launch, also after a wait for a slot, %s', async (_, given) => {
    const seen: unknown[] = []
    const gates = [deferred<undefined>(), deferred<undefined>()]
    const work = async (): Promise<string> => {
      seen.push(user.getStore())
      await gates[seen.length - 1]?.promise
      seen.push(user.getStore())
      return 'done'
    }
    const tasks = setUp({ ...given(), subagents: { work } })
    const results = ['alice', 'bob'].map((name) => user.run(name, () => tasks.launch('work', name).result))
    for (const { resolve } of gates) resolve(undefined)
    await Promise.all(results)
    expect(seen).toEqual(['alice', 'alice', 'bob', 'bob'])
  })

  it('H5: executes in the context of its launch also when an engine starts it in another one', async () => {
    const { seen, work } = recorded()
    const inner = createInProcessEngine()
    const engine: Engine = { start: (work) => user.run('engine', () => inner.start(work)) }
    const tasks = setUp({ engine, subagents: { work } })
    await user.run('alice', () => tasks.launch('work', 'x').result)
    expect(seen).toEqual(['alice'])
  })

  it.each(stores)('H5: has the context of its launch in each attempt, %s', async (_, given) => {
    const { seen, note } = recorded()
    const work: Subagent = {
      retry: { attempts: 3, on: ['interrupted'], backoff: { initialMs: 1 } },
      run: () => {
        note()
        if (seen.length < 3) throw Object.assign(new Error('again'), { code: 'INTERRUPTED' })
        return 'done'
      },
    }
    const tasks = setUp({ ...given(), subagents: { work } })
    await user.run('alice', () => tasks.launch('work', 'x').result)
    expect(seen).toEqual(['alice', 'alice', 'alice'])
  })

  it.each(stores)(
    'H5: has the context of its launch when the tasks that it waits for have ended, %s',
    async (_, given) => {
      const { seen, gate, work } = recorded()
      const tasks = setUp({ ...given(), subagents: { first: () => gate.promise, second: work } })
      const first = user.run('alice', () => tasks.launch('first', 'x'))
      const second = user.run('bob', () => tasks.launch('second', 'y', { after: [first.id] }).result)
      gate.resolve('done')
      await second
      expect(seen).toEqual(['bob'])
    },
  )

  it.each(stores)('H5: is aborted in the context of its launch when another call cancels it, %s', async (_, given) => {
    const { seen, note } = recorded()
    const started = deferred<undefined>()
    const work: Subagent = (_request, { signal }) =>
      new Promise((_, reject) => {
        started.resolve(undefined)
        signal.addEventListener('abort', () => {
          note()
          reject(new Error('aborted'))
        })
      })
    const tasks = setUp({ ...given(), subagents: { work } })
    const handle = user.run('alice', () => tasks.launch('work', 'x'))
    await started.promise
    user.run('bob', () => tasks.manager.cancelTask(handle.id))
    await expect(handle.result).rejects.toThrow()
    await settle()
    expect(seen).toEqual(['alice'])
  })

  it('H5: is asked to conclude in the context of its launch', async () => {
    const { seen, gate, note } = recorded()
    const contexts: RunContext[] = []
    const work: Subagent = (_request, context) => {
      contexts.push(context)
      context.wrapUp.addEventListener('abort', note)
      return gate.promise
    }
    const tasks = setUp({ subagents: { work } })
    const handle = user.run('alice', () => tasks.launch('work', 'x', { budget: { tokens: 10 } }))
    await settle()
    user.run('bob', () => contexts[0]?.spend({ tokens: 20 }))
    gate.resolve('done')
    await handle.result
    expect(seen).toEqual(['alice'])
  })

  it('H5: of a schedule executes in the context in which the schedule was added, and after a crash in that of the host', async () => {
    const { seen, work } = recorded()
    const clock = createManualClock()
    const store = memoryStore()
    const first = setUp({ clock, store, schedules: {}, subagents: { work } })
    user.run('alice', () => first.schedule({ every: 60_000, launch: { subagent: 'work', goal: 'x' } }))
    user.run('bob', () => clock.advance(60_000))
    await settle()
    expect(seen).toEqual(['alice'])
    const copy = store.copy()
    const second = setUp({ clock, store: copy, schedules: {}, subagents: { work } })
    await user.run('carol', () => second.recovered)
    user.run('bob', () => clock.advance(60_000))
    await settle()
    expect(seen.slice(1).sort()).toEqual(['alice', 'host'])
  })

  it('H5: of an earlier process executes in the context of the host', async () => {
    const { seen, work } = recorded()
    const store = memoryStore()
    const retry = { attempts: 2, on: ['interrupted'] } as const
    const first = setUp({ store, subagents: { work: { retry, run: () => new Promise(() => undefined) } } })
    for (const name of ['alice', 'bob']) user.run(name, () => first.launch('work', name))
    await first.manager.stored()
    const second = setUp({ store: store.copy(), subagents: { work: { retry, run: work } } })
    await user.run('alice', () => second.manager.waitFor(second.manager.getAllTasks().map(({ id }) => id)))
    expect(seen).toEqual(['host', 'host'])
  })
})

describe('a turn that delivers results', () => {
  it.each(stores)(
    'H5: executes in the context in which the host was created, with createTurns, %s',
    async (_, given) => {
      const { seen, gate } = recorded()
      const turns = createTurns(async (text, _signal, delivery) => {
        seen.push([delivery === undefined ? text : 'results', user.getStore()])
        await gate.promise
      })
      onTestFinished(() => turns.dispose())
      const tasks = setUp({
        ...given(),
        subagents: { work: () => 'done' },
        isAgentBusy: turns.isBusy$,
        triggerAgentTurn: turns.triggerAgentTurn,
      })
      const turn = user.run('alice', () => turns.take('hello'))
      for (const name of ['alice', 'bob']) user.run(name, () => tasks.launch('work', name))
      await settle()
      gate.resolve('')
      await turn
      await user.run('bob', () => tasks.manager.onIdle())
      expect(seen[0]).toEqual(['hello', 'alice'])
      expect(seen.slice(1).length).toBeGreaterThan(0)
      expect(new Set(seen.slice(1).map(String))).toEqual(new Set(['results,host']))
    },
  )

  it('H5: and isAgentBusy execute where they were passed, also those that replace others', async () => {
    const seen: unknown[] = []
    const tasks = setUp({
      subagents: { work: () => 'done' },
      isAgentBusy: () => {
        seen.push(`busy: ${user.getStore()}`)
        return false
      },
      triggerAgentTurn: () => void seen.push(`turn: ${user.getStore()}`),
    })
    user.run('alice', () => tasks.launch('work', 'x'))
    await tasks.manager.onIdle()
    expect(new Set(seen.splice(0))).toEqual(new Set(['busy: host', 'turn: host']))
    user.run('carol', () =>
      tasks.setupAsyncTaskAutoTrigger(
        new Observable((subscriber) => {
          seen.push(`busy: ${user.getStore()}`)
          subscriber.next(false)
        }),
        () => void seen.push(`turn: ${user.getStore()}`),
      ),
    )
    user.run('alice', () => tasks.launch('work', 'x'))
    await tasks.manager.onIdle()
    expect(new Set(seen)).toEqual(new Set(['busy: carol', 'turn: carol']))
  })
})

describe('a callback', () => {
  it.each(stores)('H5: is called in the context in which it was added, %s', async (_, given) => {
    const seen = new Map<string, unknown[]>()
    const note = (name: string) => (): void => {
      seen.set(name, [...(seen.get(name) ?? []), user.getStore()])
    }
    const tasks = setUp({
      ...given(),
      subagents: {
        work: (_request, context) => {
          context.report({ progress: 1 })
          return 'done'
        },
      },
      onError: note('onError'),
      inspect: note('inspect'),
    })
    const { manager } = tasks
    user.run('carol', () => {
      manager.onTaskCompleted(note('handler'))
      manager.onTaskCompleted(() => {
        throw new Error('for onError')
      })
      manager.settled$.subscribe(note('settled$'))
      manager.transitions$.pipe(tap(note('pipe'))).subscribe()
      manager.progress$.subscribe({ next: note('progress$'), complete: note('complete') })
      manager.owed$.subscribe(note('owed$'))
      manager.actor.subscribe(note('actor'))
    })
    await user.run('alice', () => tasks.launch('work', 'x').result)
    await settle()
    await user.run('bob', () => tasks.dispose())
    const contexts = [...seen].map(([name, users]) => [name, ...new Set(users)].join(' '))
    const carol = ['handler', 'settled$', 'pipe', 'progress$', 'complete', 'owed$', 'actor'].map(
      (name) => `${name} carol`,
    )
    expect(contexts.sort()).toEqual([...carol, 'inspect host', 'onError host'].sort())
  })

  it('H5: of a store is called in the context in which the manager was created', async () => {
    const seen = new Set<unknown>()
    const inner = memoryStore()
    const store: Store = {
      ...inner,
      write: (changes) => {
        seen.add(user.getStore())
        return inner.write(changes)
      },
    }
    const tasks = setUp({ store, subagents: { work: () => 'done' } })
    await user.run('alice', () => tasks.launch('work', 'x').result)
    await user.run('alice', () => tasks.manager.stored())
    expect([...seen]).toEqual(['host'])
  })
})

/** An instance whose calls note their user, at their start and when they are aborted, and a task manager for it. */
function setUpCommands(given: object) {
  const { seen, note } = recorded()
  const calls: ReturnType<typeof deferred<string>>[] = []
  const execute: InstanceTool['execute'] = (_args, { signal }) => {
    const call = deferred<string>()
    calls.push(call)
    note()
    signal.addEventListener('abort', () => {
      note()
      call.reject(new Error('aborted'))
    })
    return call.promise
  }
  const instances = new InstanceManager()
  const instance = localInstance({ id: 'one', tools: [{ name: 'work', execute }] })
  user.run('host', () => instances.connect(instance))
  const manager = user.run('host', () => new TaskManager({ instances, ...given }))
  onTestFinished(async () => {
    await manager.dispose()
    await instances.dispose()
  })
  const submit = (name: string): string => {
    const message = { task_name: name, instanceId: 'one', commands: [{ tool_name: 'work' }] }
    const answer = user.run(name, () => manager.submitTask(message))
    return 'taskId' in answer ? answer.taskId : ''
  }
  return { seen, calls, instances, instance, manager, submit }
}

describe('a command', () => {
  it.each(stores)('H5: executes, and is aborted, in the context of its submission, %s', async (_, given) => {
    const inner = createInProcessEngine()
    const started: unknown[] = []
    const engine: Engine = {
      start: (work) => {
        started.push(user.getStore())
        return user.run('engine', () => inner.start(work))
      },
    }
    const { seen, calls, manager, submit } = setUpCommands({ ...given(), engine })
    const ended: unknown[] = []
    user.run('carol', () => manager.on('complete', () => ended.push(user.getStore())))
    submit('alice')
    const second = submit('bob')
    await settle()
    calls[0]?.resolve('done')
    await settle()
    await settle()
    user.run('alice', () => manager.cancelTask(second))
    await settle()
    await settle()
    expect(started).toEqual(['alice', 'bob'])
    expect(seen).toEqual(['alice', 'bob', 'bob'])
    expect(ended).toEqual(['carol', 'carol'])
  })

  it('H5: is aborted in the context of its submission when its instance ends, and handlers hear of it in their own', async () => {
    const { seen, instances, instance, submit } = setUpCommands({})
    const heard: unknown[] = []
    user.run('carol', () => {
      instances.onConnect((id) => heard.push([id, user.getStore()]))
      instances.onDisconnect((id) => heard.push([id, user.getStore()]))
    })
    submit('alice')
    await settle()
    await user.run('bob', async () => {
      instances.connect(localInstance({ id: 'two', tools: [] }))
      await instance.close()
      await instances.disconnect('one')
    })
    await settle()
    expect(seen).toEqual(['alice', 'alice'])
    expect(heard).toEqual([
      ['two', 'carol'],
      ['one', 'carol'],
    ])
  })
})

describe('a turn of createTurns', () => {
  it('H5: executes in the context of the caller of take, also when it waited for a turn of another caller', async () => {
    const seen: unknown[] = []
    const turns = createTurns(async (text) => {
      await Promise.resolve()
      seen.push([text, user.getStore()])
    })
    onTestFinished(() => turns.dispose())
    const busy = new Set<unknown>()
    user.run('host', () => turns.isBusy$.subscribe(() => busy.add(user.getStore())))
    await Promise.all(['alice', 'bob', 'carol'].map((name) => user.run(name, () => turns.take(name))))
    expect(seen).toEqual([
      ['alice', 'alice'],
      ['bob', 'bob'],
      ['carol', 'carol'],
    ])
    expect([...busy]).toEqual(['host'])
  })

  it('H5: is aborted in the context of the caller of take', async () => {
    const seen: unknown[] = []
    const turns = createTurns(
      (_text, signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            seen.push(user.getStore())
            reject(new Error('aborted'))
          })
        }),
    )
    const controller = new AbortController()
    const turn = user.run('alice', () => turns.take('hello', { signal: controller.signal }))
    await Promise.resolve()
    await Promise.resolve()
    user.run('bob', () => controller.abort())
    await expect(turn).rejects.toThrow('aborted')
    expect(seen).toEqual(['alice'])
    await turns.dispose()
  })

  it('H5: is known to the calls within it, but not to the runs that it launches', async () => {
    const marked: (TurnMarker | undefined)[] = []
    const tasks = createAgentTasks({
      subagents: {
        work: () => {
          marked.push(currentTurn())
          return 'done'
        },
      },
    })
    onTestFinished(() => tasks.dispose())
    const turns = createTurns(async () => {
      const turn = currentTurn()
      await tasks.launch('work', 'x').result
      marked.push(turn, currentTurn())
    })
    onTestFinished(() => turns.dispose())
    await Promise.all([turns.take('a'), turns.take('b')])
    const [inRun, first, , , second] = marked
    expect(first).toBeDefined()
    expect(second).toBeDefined()
    expect(second).not.toBe(first)
    expect(marked).toEqual([inRun, first, first, undefined, second, second])
    expect(inRun).toBeUndefined()
    expect([first?.isOver, second?.isOver, currentTurn()]).toEqual([true, true, undefined])
  })
})
