/** The frame of the page: header, navigation, and the part that the address names. */
import { useSignalEffect } from '@preact/signals'
import type { ComponentType } from 'preact'
import { omitUndefined } from '../../../data/omit-undefined.js'
import { PART_NAMES, type Part } from '../addresses.js'
import { currentAddress } from '../current-address.js'
import { DeliveryPart } from '../delivery/delivery-part.js'
import { HistoryPart } from '../history/history-part.js'
import { HealthPart } from '../health/health-part.js'
import { HostPart } from '../host/host-part.js'
import { InstancesPart } from '../instances/instances-part.js'
import { LaunchPart } from '../launch/launch-part.js'
import { MachinesPart } from '../machines/machines-part.js'
import { usePage } from '../page-state.js'
import { TaskPart } from '../task/task-part.js'
import { TasksPart } from '../tasks/tasks-part.js'
import { TimelinePart } from '../timeline/timeline-part.js'
import { ConnectionBadge } from './connection-badge.js'
import { ConnectionNotice } from './connection-notice.js'
import { Navigation } from './navigation.js'
import { pageTitle } from './page-title.js'
import type { PartProps } from './part-props.js'
import { QuestionsBadge } from './questions-badge.js'
import { useFocusOfPart } from './use-focus-of-part.js'

const COMPONENTS: Readonly<Record<Part, ComponentType<PartProps>>> = {
  timeline: TimelinePart,
  tasks: TasksPart,
  task: TaskPart,
  launch: LaunchPart,
  history: HistoryPart,
  delivery: DeliveryPart,
  host: HostPart,
  machines: MachinesPart,
  instances: InstancesPart,
  health: HealthPart,
}

export function App() {
  const { connection, view, asking } = usePage()
  const address = currentAddress.value
  useFocusOfPart(address)
  const { state } = connection.value
  const Shown = COMPONENTS[address.part]
  const isStale = state !== 'live'
  const hasSeen = view.value.hello !== undefined
  useSignalEffect(() => {
    const { part, subject } = currentAddress.value
    const task = part === 'task' && subject !== undefined ? view.value.findTask(subject)?.title : undefined
    document.title = pageTitle({
      part,
      ...omitUndefined({ task }),
      asking: asking.value.many,
      state: connection.value.state,
      host: location.host,
    })
  })
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        To the content
      </a>
      <header class="top">
        <p class="brand">agent-tasks</p>
        <Navigation current={address.part} />
        <QuestionsBadge />
        <ConnectionBadge />
      </header>
      <ConnectionNotice />
      <main id="main" tabIndex={-1} class={isStale && hasSeen ? 'stale' : undefined} data-stale={isStale}>
        {hasSeen || state === 'live' ? (
          <Shown address={address} />
        ) : (
          <>
            <h1>{PART_NAMES[address.part]}</h1>
            {state === 'connecting' && <p class="hint">Connecting to the server …</p>}
          </>
        )}
      </main>
    </>
  )
}

/** Moves the focus to the content. A normal link to `#main` would replace the address of the part, which is in the fragment, too. */
function skip(event: Event): void {
  event.preventDefault()
  document.getElementById('main')?.focus()
}
