/** Runs as owners: the run of a task owns the tasks that it launches. */

/** The name of a run as owner is this prefix and the id of its task. */
const RUN_OWNER_PREFIX = 'run:'

/** Returns the name under which the run of a task owns the tasks that it launches. */
export const ownerOfRun = (taskId: string): string => RUN_OWNER_PREFIX + taskId

/** Returns the id of the task to which a run belongs; undefined if the owner is not a run. */
export const runOfOwner = (owner: string): string | undefined =>
  owner.startsWith(RUN_OWNER_PREFIX) ? owner.slice(RUN_OWNER_PREFIX.length) : undefined

/**
 * Returns the owner for whom the tasks of `owner` count: for those that a run has launched, the owner of the run.
 * @param ownerOf returns the owner of a kept task
 */
export function payerOf(owner: string, ownerOf: (taskId: string) => string | undefined): string {
  let payer = owner
  for (let runId = runOfOwner(payer); runId !== undefined; runId = runOfOwner(payer)) {
    const above = ownerOf(runId)
    if (above === undefined) break
    payer = above
  }
  return payer
}
