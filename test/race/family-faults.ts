/** Faults of families (F5): the races of families must find each. */
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { FamilySabotage } from './families.property.js'

export interface FamilyFault {
  /** What is wrong, in kebab case. */
  readonly name: string
  readonly invariant: 'F5'
  readonly description: string
  readonly sabotage: FamilySabotage
}

export const familyFaults: readonly FamilyFault[] = [
  {
    name: 'cancel-stays-up',
    invariant: 'F5',
    description: 'a cancellation ends a task, and not those that its run has launched',
    sabotage: ({ registry: { families } }: AsyncTaskManager) => {
      families.liveChildren = () => []
    },
  },
  {
    name: 'children-dropped',
    invariant: 'F5',
    description: 'when a parent ends, what its children owe is owed to no one',
    sabotage: ({ registry: { ledger } }: AsyncTaskManager) => {
      const releaseOwner = ledger.releaseOwner.bind(ledger)
      ledger.releaseOwner = (owner) => releaseOwner(owner, undefined)
    },
  },
  {
    name: 'children-kept-by-the-dead',
    invariant: 'F5',
    description: 'what a run owned stays with it when it has ended',
    sabotage: ({ registry: { families } }: AsyncTaskManager) => {
      families.release = () => false
    },
  },
  {
    name: 'child-in-a-slot-of-its-parent',
    invariant: 'F5',
    description: 'a child takes a slot of the limit that its parent counts in',
    sabotage: ({ registry }: AsyncTaskManager) => {
      const ask = registry.ask.bind(registry)
      registry.ask = (question) => {
        if (question.type !== 'task.register') return ask(question)
        const { pool: _, ...admission } = question.admission
        return ask({ ...question, admission })
      }
    },
  },
  {
    name: 'dead-parent-launches',
    invariant: 'F5',
    description: 'a run whose task has ended launches another one',
    sabotage: ({ registry: { families } }: AsyncTaskManager) => {
      families.refusalOf = () => undefined
    },
  },
]
