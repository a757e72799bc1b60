/** One instance: its connection, its queue and its tools. */
import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { PageInstance } from '../../wire.js'
import { onFrame } from '../browser-clock.js'
import { usePage } from '../page-state.js'
import { ActionButton } from '../shell/action-button.js'
import { TaskLink } from '../task/task-facts.js'
import { count, counted, growing, timeOfDay } from '../text/format.js'
import { visible } from '../text/visible.js'
import { SubmitForm } from './submit-form.js'

const WORDS: Readonly<Record<PageInstance['state'], string>> = {
  connecting: 'Connecting',
  connected: 'Connected',
  disconnected: 'Disconnected',
}

export function InstanceCard({ instance, isOpen }: { readonly instance: PageInstance; readonly isOpen: boolean }) {
  const { second } = usePage()
  const { id, type, description, state, connectedAt, pausedSince, queued, running, tools } = instance
  const isSubmitting = useSignal(isOpen)
  const card = useRef<HTMLElement>(null)
  const close = (): void => {
    isSubmitting.value = false
    onFrame(() => card.current?.querySelector<HTMLElement>('.actions button')?.focus())
  }
  return (
    <article
      ref={card}
      class={isSubmitting.value ? 'card wide' : 'card'}
      aria-label={`Instance ${visible(id)}`}
      data-instance={id}
    >
      <header>
        <h2>{visible(id)}</h2>
        <span class={`tag instance-${state}`}>{WORDS[state]}</span>
        {pausedSince !== undefined && <span class="tag">Paused since {timeOfDay(pausedSince)}</span>}
      </header>
      <p class="hint">
        {visible(type)}
        {connectedAt !== undefined && (
          <>
            {' · '}
            since <span class="number">{timeOfDay(connectedAt)}</span> ({growing(second.value - connectedAt)})
          </>
        )}
      </p>
      {description !== undefined && <p>{visible(description)}</p>}
      <dl class="figures">
        <div>
          <dt>Queued</dt>
          <dd class="number">{count(queued)}</dd>
        </div>
        <div class="grow">
          <dt>Runs</dt>
          <dd>{running === undefined ? <span class="hint">nothing</span> : <TaskLink taskKey={running} />}</dd>
        </div>
      </dl>
      <details>
        <summary>{counted(tools.length, 'tool')}</summary>
        <dl class="tools">
          {tools.map((tool) => (
            <div key={tool.name}>
              <dt>
                <code>{visible(tool.name)}</code>
              </dt>
              <dd>{visible(tool.description ?? '')}</dd>
            </div>
          ))}
        </dl>
      </details>
      {isSubmitting.value ? (
        <SubmitForm instance={instance} onClose={close} />
      ) : (
        <div class="actions">
          <button type="button" disabled={tools.length === 0} onClick={() => (isSubmitting.value = true)}>
            Submit …
          </button>
          <ActionButton
            path={`/api/instances/${encodeURIComponent(id)}/${pausedSince === undefined ? 'pause' : 'resume'}`}
            label={pausedSince === undefined ? 'Pause' : 'Resume'}
            title="The running task continues in both cases"
          />
        </div>
      )}
    </article>
  )
}
