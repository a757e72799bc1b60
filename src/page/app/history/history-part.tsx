/** The part History: a search of the tasks that have ended, including those that only the store still has. The search is in the address. */
import type { PageTaskKind } from '../../wire.js'
import { withParameter } from '../addresses.js'
import { replaceAddress } from '../current-address.js'
import { usePage } from '../page-state.js'
import { EmptyState } from '../shell/empty-state.js'
import type { PartProps } from '../shell/part-props.js'
import { FilterSelect } from '../tasks/filter-select.js'
import { isRun } from '../text/owners.js'
import { END_STATES, LOOKS } from '../text/states.js'
import { visible } from '../text/visible.js'
import { PastTask } from './past-task.js'
import { useHistory } from './use-history.js'

const KINDS: Readonly<Record<string, PageTaskKind>> = { 'Tasks of agents': 'async', 'Tasks of instances': 'command' }

const WORDS = new Map<string, string>(END_STATES.map((end) => [end, LOOKS[end].word]))

/** Returns the distinct names. Names of runs are left out, because a run owns tasks only until it ends. */
const namesOf = (names: readonly (string | undefined)[]): string[] =>
  [...new Set(names.filter((name): name is string => name !== undefined && !isRun(name)))].sort()

export function HistoryPart({ address }: PartProps) {
  const { view, connection } = usePage()
  const { hello } = view.value
  const isLive = connection.value.state === 'live'
  const { query } = address
  const { state, more } = useHistory(query)
  const { tasks, next, error, isBusy } = state.value
  const set = (name: string, value: string | undefined): void => replaceAddress(withParameter(address, name, value))
  const isOfInstances = query.get('kind') === 'command' || hello?.hasAsync === false
  const shown = [...view.value.tasks, ...tasks].filter((task) => (task.kind === 'command') === isOfInstances)
  const groups = namesOf(shown.map(({ group }) => group))
  const filters: readonly (readonly [string, string, readonly string[]])[] = isOfInstances
    ? [['instance', 'Instance', groups]]
    : [
        ['owner', 'Owner', groups],
        ['subagent', 'Subagent', namesOf(shown.map(({ subagent }) => subagent))],
      ]
  const kind = Object.keys(KINDS).find((name) => KINDS[name] === query.get('kind'))
  return (
    <section class="part" aria-labelledby="history-heading">
      <div class="part-head">
        <h1 id="history-heading">History</h1>
        <p class="hint">Latest first</p>
      </div>
      <search class="filters">
        <label class="grow">
          <span class="label">Search</span>
          <input
            type="search"
            placeholder="Words of the goal, the result or the error"
            maxLength={1000}
            value={query.get('text') ?? ''}
            onInput={({ currentTarget }) => set('text', currentTarget.value)}
          />
        </label>
        <FilterSelect
          label="State"
          value={query.get('status') ?? undefined}
          options={END_STATES}
          textOf={(end) => WORDS.get(end) ?? visible(end)}
          onChange={(to) => set('status', to)}
        />
        {filters.map(([name, label, options]) => (
          <FilterSelect
            key={name}
            label={label}
            value={query.get(name) ?? undefined}
            options={options}
            onChange={(to) => set(name, to)}
          />
        ))}
        {hello?.hasAsync === true && hello.hasCommands && (
          <FilterSelect
            label="Of"
            value={kind}
            options={Object.keys(KINDS)}
            onChange={(to) => {
              // The other kind of task has other filters by name.
              const kept = new URLSearchParams(query)
              for (const [name] of filters) kept.delete(name)
              const at = { ...address, query: kept }
              replaceAddress(withParameter(at, 'kind', to === undefined ? undefined : KINDS[to]))
            }}
          />
        )}
      </search>
      {error !== undefined && (
        <p class="problem" role="alert">
          {visible(error)}
        </p>
      )}
      {tasks.length === 0 && !isLive ? (
        <EmptyState title="The history appears when the server is connected" />
      ) : tasks.length === 0 && !isBusy && error === undefined ? (
        <EmptyState title={query.toString() === '' ? 'Nothing has ended yet' : 'No task matches the search'}>
          {query.toString() === ''
            ? 'A task appears here when it has ended. With a store, it stays for days, even if the server restarts.'
            : 'A task must contain each word of the search. A search word of three or more letters also finds longer words that begin with it.'}
        </EmptyState>
      ) : (
        <ol class="past-tasks" aria-busy={isBusy}>
          {tasks.map((task) => (
            <PastTask key={task.key} task={task} />
          ))}
        </ol>
      )}
      {next !== undefined && (
        <p>
          <button type="button" aria-disabled={isBusy} onClick={more}>
            Show more
          </button>
        </p>
      )}
    </section>
  )
}
