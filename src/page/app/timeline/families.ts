/** The families of tasks: a task, the tasks that it launched, the tasks that these launched, and so on. */
import type { PageTask } from '../../wire.js'

export interface Families {
  /** Returns the first known task of the family: the task that directly or indirectly launched this task, or the task itself. */
  rootOf(task: PageTask): PageTask
  /** Returns the tasks that this task launched, oldest first. */
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
    // A command task is shown under its instance, even if an async task launched it.
    return parent?.kind === kind ? parent : undefined
  }
  const rootOf = (task: PageTask): PageTask => {
    const known = roots.get(task.key)
    if (known) return known
    // Ends the recursion if the records name two tasks as the parents of each other.
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
