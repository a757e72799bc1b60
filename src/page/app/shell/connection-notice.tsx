/** Explains what to do when the server is lost, refuses the page, or was restarted. */
import { usePage } from '../page-state.js'
import { timeOfDay } from '../text/format.js'
import { visible } from '../text/visible.js'
import { lossText, RESTARTED } from './connection-words.js'
import { TokenForm } from './token-form.js'

export function ConnectionNotice() {
  const { connection, retryNow, view, restartedAt } = usePage()
  const now = connection.value
  const hasSeen = view.value.hello !== undefined
  if (now.state === 'refused') return <TokenForm hasSeen={hasSeen} />
  if (now.state === 'lost') {
    return (
      <div class="notice" role="alert">
        <p>
          <strong>The connection to the server is lost.</strong> {visible(lossText(now.why, hasSeen))}
        </p>
        <button type="button" onClick={retryNow}>
          Try now
        </button>
      </div>
    )
  }
  if (restartedAt.value === undefined) return null
  return (
    <div class="notice" role="status">
      <p>
        {RESTARTED} <span class="hint number">Found at {timeOfDay(restartedAt.value)}.</span>
      </p>
      <button type="button" onClick={() => (restartedAt.value = undefined)}>
        Understood
      </button>
    </div>
  )
}
