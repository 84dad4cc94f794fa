"""Which test shows that a choice of `vc4lab unknowns` is obeyed: every choice but the defaults.

A new row needs at least two choices, and each of them a line here: the test must fail if the switch
is ignored, and where native code and the reference interpreter both have to obey, it compares them.
"""

TESTS: dict[str, dict[str, tuple[str, ...]]] = {
    "tests/qpu/test_execution.py": {
        "test_a_register_file_read_sees_the_old_value_once": ("register_after_write=new",),
        "test_unknowns_can_be_switched": (
            "sf_with_never=mul",
            "branch_register_lane=0",
            "mul24_carry=over-24-bits",
            "fmul_carry=positive",
            "half_rounding=nearest",
            "half_rounding=truncate",
            "colour_rounding=truncate",
            "mul_pack_bit_3=no_pack",
            "recip_one=model",
            "thread_switch_registers=zero",
            "ftoi_out_of_range=saturate",
            "ftoi_out_of_range=zero",
            "infinity_order=a-first",
            "unmapped_read=zero",
            "peripheral_unpack=raw",
            "load_immediate_condition=mul-if-never",
            "mul_nop_result=nothing",
            "same_destination=add",
            "underflow_sign=kept",
            "uniform_read_twice=two",
            "r5_write_condition=any",
            "r5_write_condition=each",
            "float_pack_32=finite",
            "rotation_order=last",
        ),
    },
    "tests/v3d/checks/test_shader_checks.py": {
        "test_forgiving_and_the_other_choice": ("varying_missing=waits",)
    },
    "tests/drm/kms/test_scanout.py": {
        "test_products_are_rounded_as_the_switch_says": ("hvs_blend_rounding=down",),
        "test_a_plane_is_scaled_as_the_switch_says": ("hvs_filter=nearest",),
        "test_narrow_channels_are_widened_as_the_switch_says": ("hvs_expand=nearest",),
        "test_a_colour_matrix_and_then_ramps": ("hvs_matrix_rounding=down",),
        "test_a_plane_that_is_shrunk_a_lot_is_as_the_switch_says": ("hvs_shrink_limit=wraps",),
    },
    "tests/drm/kms/test_planes.py": {
        "test_a_plane_that_is_scaled_too_much_is_refused": ("hvs_shrink_limit=refuses",)
    },
    "tests/soc/display/test_display.py": {
        "test_the_identity_is_as_the_switch_says": ("hvs_identity=zero",),
        "test_a_fixed_alpha_that_is_mixed_is_as_the_switch_says": ("hvs_fixed_mix=product",),
    },
    "tests/soc/display/test_transposer.py": {
        "test_a_choice_of_alpha_and_pace": ("txp_alpha=zero", "txp_pace=display")
    },
    "tests/soc/devices/test_clock_tree.py": {"test_whether_pll_a_runs_at_the_start": ("pll_start=used",)},
    "tests/soc/display/test_yuv.py": {
        "test_colour_between_samples_is_as_the_switch_says": ("hvs_chroma=nearest",),
        "test_sums_are_rounded_as_the_switch_says": ("hvs_csc_rounding=down",),
    },
    "tests/soc/cores/test_address_space.py": {
        "test_older_firmware_gives_the_framebuffers_physical_address": ("framebuffer_address=physical",),
        "test_the_switch_takes_the_repetitions_away": ("arm_upper_addresses=nothing",),
    },
    "tests/soc/caches/test_caches.py": {"test_whether_the_l2_is_on_at_first": ("l2c_at_power_on=disabled",)},
    "tests/soc/cores/test_cores.py": {
        "test_generic_timers_count_microseconds_until_a_stub_or_a_program_changes_that": (
            "timer_prescaler=crystal",
        )
    },
    "tests/soc/cores/engine/test_alignment.py": {"test_an_arm1176_as_armv6": ("arm1176_unaligned=armv6",)},
    "tests/soc/cores/code/test_events.py": {"test_a_mailbox_needs_an_event": ("parked_cores=polling",)},
    "tests/soc/cores/code/test_exclusives.py": {
        "test_what_a_cortex_a7_does_is_a_choice": ("exclusive_without_monitor=abort",)
    },
    "tests/soc/boot/test_firmware_age.py": {"test_the_pl011s_clock": ("uart_clock=3mhz",)},
    "tests/soc/videocore/test_mailbox_time.py": {
        "test_how_long_is_a_choice": ("mailbox_answer_time=10us", "mailbox_answer_time=1ms")
    },
    "tests/soc/videocore/test_framebuffer.py": {
        "test_small_depths": ("framebuffer_small_pixels=high",),
        "test_whether_alpha_counts": ("framebuffer_alpha=mode",),
        "test_the_order_of_channel_1": ("framebuffer_order_channel_1=rgb",),
    },
    "tests/soc/cores/exceptions/test_hyp.py": {
        "test_smc_without_a_monitor": ("monitor_call=undefined",),
        "test_the_mode_at_the_start": ("hyp_start=svc",),
    },
    "tests/soc/test_machine.py": {"test_the_order_nobody_documented_is_a_switch": ("framebuffer_order=rgb",)},
    "tests/soc/videocore/test_properties.py": {
        "test_execute_qpu_fails_as_one_likes": ("execute_qpu_failure=one",)
    },
    "tests/soc/videocore/vpu/test_execution.py": {
        "test_small_float_immediates": ("vpu_float_immediate=integer",),
        "test_unknowns_can_be_switched": (
            "vpu_signext=width",
            "vpu_msb=leading_zeros",
            "vpu_brev=shifted",
            "vpu_saturation=flags",
            "vpu_btest_carry=kept",
            "vpu_float_flags=result",
            "vpu_float_condition=ignored",
            "vpu_float_to_int=wrap",
            "vpu_divide_by_zero=zero",
            "vpu_misaligned=works",
        ),
    },
    "tests/v3d/user_programs/test_switches.py": {
        "test_conditional_writes_of_the_uniforms_address": ("uniforms_address_condition=ignored",),
        "test_long_pitches": ("vdr_stride_bits=13", "vdr_stride_bits=16"),
        "test_long_strides": ("vdw_stride_bits=13",),
        "test_relative_uniforms_addresses": ("uniforms_address_b=relative",),
        "test_rows_that_go_on_behind_column_15": ("dma_row_end=wrap",),
        "test_the_vpm_while_nobody_reserved_it": ("vpm_unreserved=none",),
        "test_uniforms_behind_the_length": ("uniforms_length=prefetch",),
        "test_what_an_idle_dma_reads": ("dma_busy_read=unmapped",),
        "test_what_the_mutex_reads": ("mutex_read=constant",),
        "test_which_bytes_a_store_takes": ("dma_subword=quarters", "dma_subword=lanes"),
    },
    "tests/v3d/user_programs/test_vpm_dma.py": {
        "test_a_stride_survives_the_program": ("dma_setup_start=kept",),
        "test_block_mode_of_other_shapes": ("vdw_blockmode=packed",),
        "test_narrow_reads_with_a_sign": ("vpm_read_extension=sign",),
        "test_the_pitch_of_a_load_wraps": ("vdr_pitch_carry=low",),
        "test_unaligned_transfers": ("dma_alignment=rounded",),
        "test_vertical_blocks_that_leave_their_rows": ("vdw_vertical_wrap=start", "vdr_vertical_wrap=group"),
    },
    "tests/v3d/pse/test_coverage.py": {
        "test_bottom_left_rule_gives_the_lowest_row_to_the_other_side": ("fill_rule=bottom-left",)
    },
    "tests/v3d/pse/test_coverage_pipe.py": {
        "test_four_windings": ("coverage_winding=saturate",),
        "test_multisample_frames_keep_coverage_where_the_choice_says": (
            "coverage_multisample=copies",
            "coverage_multisample=quarters",
        ),
        "test_random_paths_with_random_samples": ("coverage_samples=rooks", "coverage_level=shifted"),
    },
    "tests/v3d/fragment/test_multisample.py": {
        "test_depth_of_each_sample": ("ms_depth=centre",),
        "test_random_triangles_cover_exactly_the_defined_samples": (
            "sample_positions=mirrored",
            "sample_positions=grid",
        ),
        "test_resolve_averages_and_decimates": ("resolve_rounding=truncate",),
        "test_switches_of_oversampling_and_16x_stores": ("ms_no_oversample=samples", "decimate_16=pixel"),
        "test_without_oversampling_the_frame_can_be_that_of_one_sample": ("ms_no_oversample=single",),
    },
    "tests/v3d/fragment/test_primitives.py": {
        "test_rectangular_lines_are_an_option": ("line_shape=rectangle",)
    },
    "tests/v3d/tlb/test_stores.py": {
        "test_undithered_565": ("rounding_565=truncate",),
        "test_zs_z_only_and_clear": ("z_only_stencil=stored",),
    },
    "tests/v3d/fragment/test_switches.py": {
        "test_dumps_of_one_sample": ("dump_single=rows",),
        "test_lane_of_the_stencil_setup": ("stencil_setup_lane=15",),
        "test_masks_in_dumps": ("dump_mask=bytes",),
        "test_what_a_write_of_ms_flags_acts_on": ("ms_flags_write=nothing", "ms_flags_write=all"),
        "test_ms_flags_of_one_sample": ("ms_flags_single=one",),
        "test_pixels_beyond_the_z_planes": ("z_clip_pixels=quads",),
        "test_depth_in_steps": ("depth_rounding=truncate", "depth_rounding=nearest"),
        "test_units_of_the_depth_offset": ("depth_offset_unit=float",),
    },
    "tests/v3d/tmu/test_tmu_switches.py": {
        "test_cube_maps_can_take_each_lanes_own_face": ("tmu_cube_lod=each_face",),
        "test_cube_maps_repeat_inside_their_faces": ("tmu_cube_wrap=clamp",),
        "test_half_floats_are_filtered": ("tmu_half_filter=truncate", "tmu_half_filter=point"),
        "test_infinite_coordinates_can_be_far_away": ("tmu_not_finite=far",),
        "test_levels_that_are_no_power_of_two": ("tmu_level_size=room",),
        "test_the_border_colour_of_4444_reversed": ("tmu_border_4444=reversed",),
        "test_short_samples_can_sit_high": ("tmu_short_position=high",),
        "test_small_levels_of_detail_are_magnified": ("tmu_magnified_below=zero",),
        "test_steps_count_up_to_the_size_of_the_texture": ("tmu_lod_step=any",),
        "test_switches": (
            "tmu_filter_rounding=once",
            "tmu_filter_rounding=truncate",
            "tmu_filter_weights=7",
            "tmu_coordinate_bits=12",
            "tmu_lod_log2=linear",
            "tmu_lod_footprint=sum",
            "tmu_lod_lane=quad",
            "tmu_bias_lane=quad",
        ),
        "test_switches_of_single_types": (
            "tmu_alpha_colour=alpha",
            "tmu_bw1_utile=64x8",
            "tmu_yuyv_order=uyv",
            "tmu_yuyv_order=vuy",
        ),
    },
    "tests/v3d/tlb/test_wide_colour.py": {
        "test_clear_words_in_32_bit_frames": ("clear_colour_words=columns",),
        "test_dumps_come_back": ("dump_64_bit=pixels",),
    },
    "tests/v3d/ptb/test_clipper.py": {
        "test_end_of_a_line_loop_is_a_switch": ("line_loop_end=first_last",),
        "test_guard_band_is_a_switch": ("guard_band=viewport",),
        "test_order_of_clipper_z_is_a_switch": ("clipper_z_order=offset_first",),
    },
    "tests/v3d/ptb/test_switches.py": {
        "test_facing_in_the_binner": ("binner_facing=yes",),
        "test_far_plane_of_the_clipper": ("clipper_far=left",),
        "test_height_of_tiles_in_double_buffer_frames": ("double_buffer_tile=full",),
        "test_order_of_state_records": ("tile_state_order=shader_first",),
        "test_state_behind_a_reset": ("state_after_reset=reset",),
        "test_weights_of_clip_records": ("clip_weights=projected",),
    },
    "tests/v3d/cle/test_binner.py": {
        "test_an_index_above_the_maximum": ("index_error=skip",),
        "test_small_overspill_blocks": ("bpos_small=taken",),
    },
    "tests/v3d/tile_lists/test_direct.py": {
        "test_inline_lists_and_continued_fans": ("vg_dummy=restart", "vg_continuation=one")
    },
    "tests/v3d/test_registers.py": {
        "test_counters_of_coverage": ("counter_coverage=paths",),
        "test_counts_of_flushes_and_frames": ("count_write_zero=clear",),
        "test_enabling_and_disabling": ("intdis_reads=zero",),
        "test_interrupts_that_are_not_enabled": ("dbqitc_set=enabled",),
        "test_interrupts_without_the_debug_configuration": ("dbcfg_interrupts=needed",),
        "test_never_is_a_depth_function": ("depth_never=passes",),
        "test_no_errors": ("errstat_vcdi=idle",),
        "test_registers_that_nobody_describes": ("undocumented_registers=zero",),
        "test_the_level_2_cache_switch": ("l2cactl_both=enable",),
    },
    "tests/v3d/tile_lists/test_list_formats.py": {
        "test_the_rendering_list_says_another_format": ("tile_list_format=separate",)
    },
    "tests/v3d/test_switches.py": {
        "test_dithered_stores_without_a_pattern": ("dither_565=none",),
        "test_facing_of_trapezoids": ("rht_facing=any",),
        "test_sub_lists_in_sub_lists": ("sublist_depth=1",),
        "test_the_boundary_of_trapezoids": ("rht_boundary_offset=fixed",),
        "test_clip_windows_without_pixels": (
            "clip_window_empty=both",
            "clip_window_empty=each",
            "clip_window_empty=nothing",
        ),
        "test_a_resolved_store_without_decimate": ("resolve_without_decimate=sample_0",),
        "test_the_clip_window_in_the_binner": ("binner_clip_window=ignored",),
        "test_the_side_of_a_line_where_its_coordinate_is_0": ("line_coordinate=left-is-1",),
        "test_whose_semaphore_is_shown": ("ctsema=own",),
    },
    "tests/drm/cpu_memory/test_the_articles_case.py": {
        "test_a_cached_scan_out_is_reported": ("dma_coherent=yes",)
    },
}
"""File → test → the choices it shows."""
