/** Draws the page. */
import { render } from 'preact'
import { Charts } from './charts.js'
import './style.css'

const root = document.getElementById('app')
if (root !== null) render(<Charts counts={{}} />, root)
