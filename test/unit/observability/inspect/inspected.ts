/** Shared by the tests of the inspector: an inspector that is closed after the test, and readers of the received messages. */
import { onTestFinished, vi } from 'vitest'
import { createInspector, type Inspector } from '../../../../src/observability/inspect/index.js'
import type { Received } from '../../../support/inspector-relay.js'
import type { InspectorOptions } from '../../../../src/observability/inspect/inspector-types.js'

/** An inspector that is closed after the test. */
export function inspectorFor(url: string, options: InspectorOptions = {}) {
  const onError = vi.fn()
  const inspector = createInspector({ url, onError, ...options })
  onTestFinished(() => inspector.close({ timeoutMs: 0 }))
  return { inspector, onError }
}

/** Closes the inspector and waits until Stately's receiver has all messages. */
export async function flushTo(inspector: Inspector, received: Received): Promise<void> {
  await inspector.close({ timeoutMs: 5000 })
  const { sent } = inspector.stats
  if (sent > 0) await received.until(() => received.messages.length >= sent)
}

/** The actors under their parents, by name, in the order of the messages: `['registry', 'registry > task.a']`. */
export function treeOf({ messages }: Received): string[] {
  const paths = new Map<string, string>()
  const tree: string[] = []
  for (const message of messages) {
    if (message.type !== '@xstate.actor') continue
    const above = message.parentId === undefined ? '' : `${paths.get(message.parentId) ?? '(unknown)'} > `
    const path = `${above}${message.name}`
    paths.set(message.sessionId, path)
    tree.push(path)
  }
  return tree
}

/** The messages of one actor, in order: the types of its events and the states of its snapshots. */
export function storyOf({ messages }: Received, name: string): string[] {
  const actor = messages.find((message) => message.type === '@xstate.actor' && message.name === name)
  return messages.flatMap((message) => {
    if (message.sessionId !== actor?.sessionId) return []
    if (message.type === '@xstate.event') return [message.event.type]
    if (message.type === '@xstate.actor') return [`made ${stateOf(message.snapshot)}`]
    return [`is ${stateOf(message.snapshot)}`]
  })
}

const stateOf = (snapshot: unknown): string => JSON.stringify((snapshot as { value?: unknown }).value ?? 'stateless')

/** A promise that the test resolves. */
export function createGate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}
