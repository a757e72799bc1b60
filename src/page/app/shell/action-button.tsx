/** A button that sends a request to the server, and shows the error if the request fails. The button keeps the focus while the request runs. */
import { usePage } from '../page-state.js'
import { visible } from '../text/visible.js'
import { useAction } from '../use-action.js'

type Texts = Readonly<Partial<Record<'title' | 'aria-label', string>>>

export function ActionButton(props: Texts & { readonly path: string; readonly label: string; readonly body?: object }) {
  const { path, label, body = {}, ...texts } = props
  const { api, connection } = usePage()
  const acting = useAction()
  const { isBusy, error } = acting.state.value
  return (
    <>
      <button
        type="button"
        {...texts}
        aria-disabled={isBusy}
        disabled={connection.value.state !== 'live'}
        onClick={() => void acting.run(() => api.post(path, body))}
      >
        {label}
      </button>
      {error !== undefined && (
        <p class="problem" role="alert">
          {visible(error)}
        </p>
      )}
    </>
  )
}
