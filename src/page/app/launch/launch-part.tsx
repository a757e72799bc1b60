/** The part Launch: starts a task of a subagent. The selected subagent is in the address. */
import { usePage } from '../page-state.js'
import { EmptyState } from '../shell/empty-state.js'
import type { PartProps } from '../shell/part-props.js'
import { visible } from '../text/visible.js'
import { LaunchForm } from './launch-form.js'
import { NoSubagents } from './no-subagents.js'
import { useSubagents } from './use-subagents.js'

export function LaunchPart({ address }: PartProps) {
  const { view, connection } = usePage()
  const { hello } = view.value
  const { list, error } = useSubagents().value
  const { subject } = address
  const chosen = list?.subagents.find(({ name }) => name === subject) ?? list?.subagents[0]
  return (
    <section class="part" aria-labelledby="launch-heading">
      <div class="part-head">
        <h1 id="launch-heading">Launch</h1>
      </div>
      {error !== undefined && (
        <p class="problem" role="alert">
          {visible(error)}
        </p>
      )}
      {hello?.canLaunch === false ? (
        <NoSubagents />
      ) : list === undefined || chosen === undefined ? (
        error === undefined &&
        (connection.value.state === 'live' ? (
          <p class="hint">Loading …</p>
        ) : (
          <EmptyState title="The subagents appear when the server is connected" />
        ))
      ) : (
        <>
          {subject !== undefined && chosen.name !== subject && (
            <p class="problem" role="alert">
              The host has no subagent {visible(subject)}.
            </p>
          )}
          <LaunchForm list={list} subagent={chosen} />
        </>
      )}
    </section>
  )
}
