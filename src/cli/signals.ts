/** How long-running commands end on SIGTERM, SIGINT and SIGHUP. */

/**
 * Closes a server on the first signal and exits with 0; the second signal exits with 1 at once.
 * @param options.limitMs the time limit of `close` in ms; then the process exits with 1. Default: none
 */
export function closeOnSignals(close: () => Promise<void>, { limitMs }: { readonly limitMs?: number } = {}): void {
  let isClosing = false
  const end = (): void => {
    if (isClosing) process.exit(1)
    isClosing = true
    if (limitMs !== undefined) setTimeout(() => process.exit(1), limitMs).unref()
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error)
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', end).on('SIGINT', end).on('SIGHUP', end)
}
