/** The machine of one task, and the input with which an actor of it runs alone. When the machine's input changes, only this file does. */
import type { AnyStateMachine } from 'xstate'
import { importEntry } from '../package.js'

const SUBAGENT = { subagentName: 'agent' }
const nothing = (): undefined => undefined

export interface TaskMachine {
  readonly machine: AnyStateMachine
  readonly inputOf: (id: string) => object
}

export async function loadTaskMachine(checkout: string): Promise<TaskMachine> {
  const { asyncTaskMachine } = await importEntry(checkout, './machines')
  const machine: AnyStateMachine = asyncTaskMachine
  if (!('publishQuestions' in machine.implementations.actions)) {
    // An older build: the host provides its effects as actions, and the machine waits for the grace itself.
    return {
      machine: machine.provide({ actions: { requestAbort: nothing, noteQuestions: nothing } }),
      inputOf: (id) => ({ id, ...SUBAGENT, graceMs: 5000 }),
    }
  }
  const host = { requestAbort: nothing, setQuestions: nothing }
  return { machine, inputOf: (id) => ({ id, ...SUBAGENT, host }) }
}
