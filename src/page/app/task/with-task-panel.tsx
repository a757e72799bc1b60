/** A list with a panel for the selected task. The selected task is in the address. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { withParameter, type Address } from '../addresses.js'
import { onFrame } from '../browser-clock.js'
import { currentAddress, pushAddress, replaceAddress } from '../current-address.js'
import { TaskPanel } from './task-panel.js'

export interface Choosing {
  readonly chosen: string | undefined
  /** Selects a task. If the panel is open, it shows the task. */
  readonly choose: (key: string) => void
  /** Opens the panel and moves the focus to it. */
  readonly open: (key: string) => void
}

interface Props {
  readonly address: Address
  readonly children: (choosing: Choosing) => ComponentChildren
}

const HEADING = 'task-panel-heading'

export function WithTaskPanel({ address, children }: Props) {
  const list = useRef<HTMLDivElement>(null)
  const moved = useSignal<string | undefined>(undefined)
  const shown = address.query.get('task') ?? undefined
  const show = (key: string | undefined): void => {
    const present = currentAddress.peek()
    // Going back closes a panel that was opened.
    const change = key !== undefined && !present.query.has('task') ? pushAddress : replaceAddress
    change(withParameter(present, 'task', key))
  }
  const choosing = useRef<Pick<Choosing, 'choose' | 'open'>>({
    choose: (key) => {
      moved.value = key
      if (currentAddress.peek().query.has('task')) show(key)
    },
    open: (key) => {
      moved.value = key
      show(key)
      onFrame(() => document.getElementById(HEADING)?.focus())
    },
  })
  const close = (): void => {
    show(undefined)
    onFrame(() => list.current?.querySelector<HTMLElement>('[role=grid], [role=tree]')?.focus())
  }
  const onKeyDown = ({ key, target }: KeyboardEvent): void => {
    // In a dialog, Escape closes only the dialog.
    const isInDialog = target instanceof Element && target.closest('dialog') !== null
    if (key === 'Escape' && shown !== undefined && !isInDialog) close()
  }
  return (
    <div class={shown === undefined ? 'split' : 'split has-side'} onKeyDown={onKeyDown}>
      <div class="split-main" ref={list}>
        {children({ chosen: shown ?? moved.value, ...choosing.current })}
      </div>
      {shown !== undefined && (
        <aside class="split-side" aria-labelledby={HEADING}>
          <TaskPanel name={shown} headingId={HEADING} onClose={close} />
        </aside>
      )}
    </div>
  )
}
