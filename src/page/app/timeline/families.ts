/** The families of tasks: a task, the tasks that it launched, and so on. */
import type { PageTask } from '../../wire.js'

export interface Families {
  /** The first known task in the chain of launches that led to this task, or the task itself. */
  rootOf(task: PageTask): PageTask
  /** The oldest first. */
  childrenOf(task: PageTask): readonly PageTask[]
}

/** @param tasks the newest first */
export function familiesOf(tasks: readonly PageTask[]): Families {
  if (tasks.every(({ parentKey }) => parentKey === undefined)) return { rootOf: (task) => task, childrenOf: () => [] }
  const byKey = new Map(tasks.map((task) => [task.key, task]))
  const roots = new Map<string, PageTask>()
  const children = new Map<string, PageTask[]>()
  const parentOf = ({ parentKey, kind }: PageTask): PageTask | undefined => {
    const parent = parentKey === undefined ? undefined : byKey.get(parentKey)
    // A command task stays in the lane of its instance.
    return parent?.kind === kind ? parent : undefined
  }
  const rootOf = (task: PageTask): PageTask => {
    const known = roots.get(task.key)
    if (known) return known
    // Stops the recursion when tasks claim to have launched each other.
    roots.set(task.key, task)
    const parent = parentOf(task)
    const root = parent ? rootOf(parent) : task
    roots.set(task.key, root)
    return root
  }
  for (const task of tasks.toReversed()) {
    const parent = parentOf(task)
    if (!parent || rootOf(task) === task) continue
    const siblings = children.get(parent.key)
    if (siblings) siblings.push(task)
    else children.set(parent.key, [task])
  }
  return { rootOf, childrenOf: ({ key }) => children.get(key) ?? [] }
}
