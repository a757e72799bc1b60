/** What to do while the server is lost or refuses the page. */
import { usePage } from '../page-state.js'
import { visible } from '../text/visible.js'
import { TokenForm } from './token-form.js'

export function ConnectionNotice() {
  const { connection, retryNow, view } = usePage()
  const now = connection.value
  if (now.state === 'refused') return <TokenForm why={now.why} />
  if (now.state !== 'lost') return null
  const hasSeen = view.value.hello !== undefined
  return (
    <div class="notice" role="alert">
      <p>
        <strong>The server is lost.</strong> {visible(now.why)} {hasSeen ? 'What you see is as it was then. ' : ''}The
        page tries again by itself.
      </p>
      <button type="button" onClick={retryNow}>
        Try now
      </button>
    </div>
  )
}
