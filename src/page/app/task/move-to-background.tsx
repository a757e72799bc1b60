/** Moves a task that a call waits for to the background. */
import { usePage } from '../page-state.js'
import { visible } from '../text/visible.js'
import { useAction } from '../use-action.js'
import { pathOf } from './use-task-detail.js'

export function MoveToBackground({ taskKey }: { readonly taskKey: string }) {
  const { api, connection } = usePage()
  const moving = useAction()
  const { isBusy, error } = moving.state.value
  return (
    <>
      <button
        type="button"
        title="The call that waits for this task returns, and its result is delivered later"
        disabled={isBusy || connection.value.state !== 'live'}
        onClick={() => void moving.run(() => api.post(`${pathOf(taskKey)}/detach`, {}))}
      >
        Move to background
      </button>
      {error !== undefined && (
        <p class="problem" role="alert">
          {visible(error)}
        </p>
      )}
    </>
  )
}
