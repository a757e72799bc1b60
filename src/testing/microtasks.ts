/** Runs that many microtasks, so that promise chains up to that length go on. */
export async function runMicrotasks(count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) await RESOLVED
}

const RESOLVED = Promise.resolve()
