/** The state of the connection in words, which every part shows. */
import { usePage } from '../page-state.js'
import { timeOfDay } from '../text/format.js'

export function ConnectionBadge() {
  const { connection, lostAt } = usePage()
  const { state } = connection.value
  const words = {
    connecting: 'Connecting',
    live: 'Live',
    lost: lostAt.value === 0 ? 'No server' : `Lost at ${timeOfDay(lostAt.value)}`,
    refused: 'No access',
  }[state]
  return (
    <p class={`connection ${state}`} role="status" data-connection={state}>
      <span class="dot" aria-hidden="true" />
      {words}
    </p>
  )
}
