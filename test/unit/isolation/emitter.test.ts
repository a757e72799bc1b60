// Streams and handlers of the same events, and what is left of them after the end.
import { describe, expect, it } from 'vitest'
import { Emitter } from '../../../src/isolation/emitter.js'

interface Event {
  readonly taskId?: string
  readonly n: number
}

function createEmitter() {
  const reported: unknown[] = []
  const emitter = new Emitter<{ readonly step: Event; readonly end: Event }>(['step', 'end'], (error, from) =>
    reported.push([String(error), from]),
  )
  return { emitter, reported }
}

describe('an emitter', () => {
  it('A2: notifies the streams first, then the handlers in the order in which they were added', () => {
    const { emitter } = createEmitter()
    const log: string[] = []
    emitter.on('step', () => log.push('first'))
    emitter.on('step', () => log.push('second'))
    emitter.on('end', () => log.push('end'))
    emitter.stream('step').subscribe(({ n }) => log.push(`stream ${n}`))
    emitter.emit('step', { n: 1 })
    expect(log).toEqual(['stream 1', 'first', 'second'])
    emitter.close()
  })

  it('does not call a handler that an earlier one has removed, nor one that was added meanwhile', () => {
    const { emitter } = createEmitter()
    const log: string[] = []
    const second = () => log.push('second')
    emitter.on('step', () => {
      emitter.off('step', second)
      emitter.on('step', () => log.push('late'))
    })
    emitter.on('step', second)
    emitter.emit('step', { n: 1 })
    expect(log).toEqual([])
  })

  it('A2: reports what handlers and subscribers throw, with the task, and goes on', async () => {
    const { emitter, reported } = createEmitter()
    const log: string[] = []
    emitter.stream('step').subscribe(() => {
      throw new Error('subscriber')
    })
    emitter.on('step', () => {
      throw new Error('handler')
    })
    emitter.on('step', () => Promise.reject(new Error('async')))
    emitter.on('step', () => log.push('last'))
    emitter.emit('step', { taskId: 't', n: 1 })
    emitter.emit('step', { n: 2 })
    await Promise.resolve()
    await Promise.resolve()
    expect(log).toEqual(['last', 'last'])
    expect(reported).toEqual([
      ['Error: subscriber', { source: 'stream' }],
      ['Error: handler', { source: 'handler', taskId: 't' }],
      ['Error: subscriber', { source: 'stream' }],
      ['Error: handler', { source: 'handler' }],
      ['Error: async', { source: 'handler', taskId: 't' }],
      ['Error: async', { source: 'handler' }],
    ])
    emitter.close()
  })

  it('completes the streams in the order of their subscriptions, and has no handlers after that', () => {
    const { emitter } = createEmitter()
    const log: string[] = []
    emitter.stream('end').subscribe({ complete: () => log.push('end') })
    emitter.stream('step').subscribe({ complete: () => log.push('step') })
    emitter.on('step', () => log.push('handler'))
    emitter.close()
    emitter.emit('step', { n: 1 })
    emitter.stream('step').subscribe({ next: () => log.push('next'), complete: () => log.push('late') })
    expect(log).toEqual(['end', 'step', 'late'])
  })
})
