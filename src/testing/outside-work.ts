/** Detects work that code in a race has started but the race does not control: real timers, fetch, files, connections and child processes. */

export interface OutsideWatch {
  /** Returns a hint for a run that hangs: the work that has started since the watch began and has not ended. */
  hint(): string
  stop(): void
}

const CONNECTION = 'a connection'

/** The resources that `process.getActiveResourcesInfo()` names, by the work that uses them. */
const resources: Readonly<Record<string, readonly string[]>> = {
  'a real timer': ['Timeout', 'Immediate'],
  'a file operation (fs)': ['FSReqCallback', 'FSReqPromise'],
  [CONNECTION]: [
    ...['TCPSocketWrap', 'TCPConnectWrap', 'PipeWrap', 'PipeConnectWrap', 'TLSWrap', 'UDPWrap'],
    ...['GetAddrInfoReqWrap', 'QueryReqWrap'],
  ],
  'a child process': ['ProcessWrap'],
}

// `fetch` opens its connection after the run, so the active resources would not show it. Its calls are counted instead.
let fetches = 0
let watches = 0
let original: typeof fetch
const countedFetch: typeof fetch = (...args) => {
  fetches += 1
  return original(...args)
}

/** Watches until `stop` is called. Runs at the same time see the work of each other. */
export function watchOutside(): OutsideWatch {
  const before = countActive()
  const fetchesBefore = fetches
  watches += 1
  if (globalThis.fetch !== countedFetch) {
    original = globalThis.fetch
    globalThis.fetch = countedFetch
  }
  return {
    hint: () => {
      const now = countActive()
      const isFetching = fetches > fetchesBefore
      const started = Object.entries(resources).flatMap(([what, names]) =>
        names.some((name) => (now.get(name) ?? 0) > (before.get(name) ?? 0)) ? [what] : [],
      )
      // A fetch has its own connection, which is not named as well.
      const all = isFetching ? [...started.filter((what) => what !== CONNECTION), 'fetch'] : started
      const found = all.length === 0 ? '' : `The run has started ${all.join(' and ')}, for which a race does not wait. `
      return `${found}Set timers on race.clock, and pass promises from outside the race to race.schedule.`
    },
    stop: () => {
      watches -= 1
      // If a mock has replaced `fetch` in the meantime, the mock stays.
      if (watches === 0 && globalThis.fetch === countedFetch) globalThis.fetch = original
    },
  }
}

function countActive(): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of process.getActiveResourcesInfo()) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}
