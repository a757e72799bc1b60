/** Runs the given number of microtasks, so that promise chains up to that length can continue. */
export async function runMicrotasks(count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) await RESOLVED
}

const RESOLVED = Promise.resolve()
