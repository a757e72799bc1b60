/** One task of the history, with its result folded below it. */
import type { ActionDone, PastTaskRow } from '../../wire.js'
import { addressOf, encoded } from '../addresses.js'
import { goTo } from '../current-address.js'
import { usePage } from '../page-state.js'
import { StateBadge } from '../shell/state-badge.js'
import { duration, fullTime } from '../text/format.js'
import { visible, visibleLines } from '../text/visible.js'
import { useAction } from '../use-action.js'

export function PastTask({ task }: { readonly task: PastTaskRow }) {
  const { api, connection, view } = usePage()
  const again = useAction()
  const { key, id, title, group, subagent, state, createdAt, endedAt, result, error, canRunAgain } = task
  const { isBusy, error: problem } = again.state.value
  const run = (): void =>
    void again.run(async () => {
      const made = await api.post<ActionDone>(`/api/history/${encoded(key)}/run-again`, {})
      if (made.key !== undefined) goTo(addressOf('task', made.key))
    })
  return (
    <li class="card past-task">
      <header>
        <h2>{view.value.taskOf(key) ? <a href={addressOf('task', key)}>{visible(title)}</a> : visible(title)}</h2>
        <StateBadge state={state} />
      </header>
      <p class="hint">
        {visible([subagent, group].filter((part) => part !== undefined).join(' · '))} · {fullTime(endedAt)} ·{' '}
        {duration(endedAt - createdAt)}
      </p>
      {error !== undefined && <p class="reason">{visible(error)}</p>}
      {result !== undefined && (
        <details>
          <summary>Result</summary>
          <pre class="past-result" tabIndex={0}>
            {visibleLines(result)}
          </pre>
        </details>
      )}
      <footer>
        <code>{visible(id)}</code>
        <button
          type="button"
          aria-disabled={isBusy}
          disabled={!canRunAgain || connection.value.state !== 'live'}
          title={canRunAgain ? undefined : 'The subagent or instance of this task no longer exists'}
          aria-label={`Run again: ${visible(title)}`}
          onClick={run}
        >
          Run again
        </button>
      </footer>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {visible(problem)}
        </p>
      )}
    </li>
  )
}
